// Creates the events of a run's agents: their messages as they are written, and snapshots of their threads.

import type { Message } from "../../../agent/core/message.ts";
import { type LangChainMessage, messageShape, stateShape } from "../history.ts";
import { checkpointBefore, headOf, stepOf } from "../resources/checkpoints.ts";
import type { Data, MessageWriter } from "./message-writer.ts";
import type { LangGraphEvent, Teller } from "./told.ts";

export interface ShownThread {
  /** The thread's messages. The run's own messages come after the messages that precede the run's first one. */
  readonly messages: readonly Message[];
  readonly state: Readonly<Record<string, unknown>>;
  /**
   * True if later runs were accepted. In that case, only messages that the thread still has are sent, and each block is
   * sent whole. A client that has the thread's state would otherwise show pieces of an old message again.
   */
  readonly isPast: boolean;
}

/** An active agent, either the run's own or a subagent. */
export interface Speaker {
  readonly namespace: readonly string[];
  /** The messages of its thread. Undefined until the beginning of the thread is known. */
  messages: Message[] | undefined;
  readonly shapes: LangChainMessage[];
  writer: MessageWriter | undefined;
  /** In a past run, the start of a block, which is sent together with the end of the block. */
  held: LangGraphEvent | undefined;
}

export class Speakers {
  readonly root = speakerOn([]);
  readonly #thread: ShownThread;
  readonly #teller: Teller;
  readonly #kept: ReadonlySet<string>;
  /** The parts of the state that clients see. */
  readonly #shown: Map<string, unknown>;
  readonly #subagents = new Map<string, Speaker>();
  #isPlaced = false;
  #isStateNew = false;

  constructor(thread: ShownThread, teller: Teller) {
    this.#thread = thread;
    this.#teller = teller;
    this.#kept = new Set(thread.messages.map(({ id }) => id));
    this.#shown = new Map(Object.entries(thread.state));
  }

  at(path: readonly string[]): Speaker {
    if (path.length === 0) return this.root;
    const key = JSON.stringify(path);
    const known = this.#subagents.get(key) ?? speakerOn(path.map(namespaceOf));
    this.#subagents.set(key, known);
    return known;
  }

  /** Returns the events for pieces of the message that the speaker is writing. */
  write(speaker: Speaker, data: readonly Data[]): LangGraphEvent[] {
    const { namespace } = speaker;
    return data.flatMap((each) =>
      this.#heldBack(speaker, { ...this.#teller.tell("messages", namespace, each), node: "agent" }),
    );
  }

  /** In a past run, holds back the start of a block until the block ends and its whole content is known. */
  #heldBack(speaker: Speaker, told: LangGraphEvent): LangGraphEvent[] {
    if (!this.#thread.isPast) return [told];
    if (speaker === this.root && !this.#kept.has(speaker.writer?.id ?? "")) return [];
    if (told.data.event === "content-block-delta") return [];
    if (told.data.event === "content-block-start") {
      speaker.held = told;
      return [];
    }
    const { held } = speaker;
    speaker.held = undefined;
    const { content } = told.data as { content?: { type: string } };
    if (!held || !content) return [...(held ? [held] : []), told];
    const isCall = content.type !== "text" && content.type !== "reasoning";
    return [isCall ? held : { ...held, data: { ...held.data, content } }, told];
  }

  /** Retracts a message. Clients keep a message until one snapshot contains it and the next one does not. */
  withdraw(speaker: Speaker, error: { message: string; code: string }): LangGraphEvent[] {
    const { writer: message, namespace, messages: own, shapes } = speaker;
    const told = message?.isBegun ? this.write(speaker, [{ event: "error", ...error }]) : [];
    speaker.writer = undefined;
    if (!message?.isBegun || !own || this.#thread.isPast) return told;
    const gone = messageShape({ id: message.id, created_at: "", role: "assistant", content: "" });
    const values = (list: readonly LangChainMessage[]): LangGraphEvent => ({
      ...this.#teller.tell("values", namespace, this.#valuesOf(namespace, list)),
      isWithdrawal: true,
    });
    return [...told, values([...shapes, gone]), values([...shapes])];
  }

  /** Adds the message to the speaker's thread. Sends a snapshot if the beginning of the thread is known. */
  add(speaker: Speaker, message: Message): LangGraphEvent[] {
    if (speaker === this.root) {
      if (this.#thread.isPast && !this.#kept.has(message.id)) return this.#passOver();
      const { messages } = this.#thread;
      const known = messages.findIndex(({ id }) => id === message.id);
      const isAhead = this.root.messages?.some(({ id }) => id === message.id);
      if (!this.#isPlaced || isAhead) this.#place(known >= 0 ? known : messages.length);
    } else if (!speaker.messages && message.role === "user") speaker.messages = [];
    if (!speaker.messages) return [];
    speaker.messages.push(message);
    speaker.shapes.push(messageShape(message));
    return this.#snapshot(speaker);
  }

  /** Skips the numbers that a snapshot would use, for a message that the thread no longer has. */
  #passOver(): LangGraphEvent[] {
    this.#teller.skip(2);
    this.#isStateNew = false;
    return [];
  }

  /** Returns the current thread, for a reader that connects during the run. */
  snapshotOfAll(): LangGraphEvent[] {
    this.#place(this.#thread.messages.length);
    return this.#snapshot(this.root);
  }

  /** Returns a snapshot if the state has changed since the last one. */
  snapshotOfState(): LangGraphEvent[] {
    if (!this.#isStateNew) return [];
    if (!this.#isPlaced && !this.#thread.isPast) this.#place(this.#thread.messages.length);
    return this.#snapshot(this.root);
  }

  setState(key: "todos" | "files", value: unknown): void {
    this.#shown.set(key, value);
    this.#isStateNew = true;
  }

  /** Places the run's messages after the first `count` messages of the thread. */
  #place(count: number): void {
    this.#isPlaced = true;
    this.root.messages = this.#thread.messages.slice(0, count);
    this.root.shapes.splice(0, Number.POSITIVE_INFINITY, ...this.root.messages.map(messageShape));
  }

  /** Returns a snapshot: the checkpoint after the speaker's newest message, and the values of its thread. */
  #snapshot({ namespace, messages: own, shapes }: Speaker): LangGraphEvent[] {
    if (!own) return [];
    if (namespace.length === 0) this.#isStateNew = false;
    const head = headOf(own);
    const before = checkpointBefore(own, own.length);
    const checkpoint = {
      id: head.id,
      ...(before ? { parent_id: before.id } : {}),
      // A rewind lowers the number of messages, but clients keep messages of a later step. The step therefore never
      // decreases.
      step: Math.max(stepOf(own, head), this.#teller.timestamp),
      source: own.at(-1)?.role === "user" ? "input" : "loop",
    };
    return [
      this.#teller.tell("checkpoints", namespace, checkpoint),
      this.#teller.tell("values", namespace, this.#valuesOf(namespace, [...shapes])),
    ];
  }

  #valuesOf(namespace: readonly string[], messages: readonly LangChainMessage[]): Data {
    return namespace.length === 0
      ? { messages, ...stateShape(Object.fromEntries(this.#shown)) }
      : { messages };
  }
}

const speakerOn = (namespace: readonly string[]): Speaker => ({
  namespace,
  messages: undefined,
  shapes: [],
  writer: undefined,
  held: undefined,
});

export const namespaceOf = (id: string) => `tools:${id}`;
