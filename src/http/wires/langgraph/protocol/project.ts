// A run as the events of LangGraph's streaming protocol.

import type { EventName, StreamEvent } from "../../../../core/event.ts";
import type { Interrupt } from "../../../../core/interrupt.ts";
import type { Message } from "../../../../core/message.ts";
import type { RunRecord } from "../../../../core/records.ts";
import { merge } from "../../../../core/run.ts";
import { checkpointBefore, headOf, stepOf } from "../checkpoints.ts";
import { interruptsOf, type LangChainMessage, messageShape, shownArgs, stateShape } from "../shapes.ts";
import { type Data, type Writing, writing } from "./writing.ts";

/** An event of our log, where it stands there. */
export interface Position {
  readonly epoch: number;
  readonly seq: number;
}

/** An event of the protocol. */
export interface Told {
  /** The event of our log that gave it, and its number among what that gave. */
  readonly at: Position & { readonly k: number };
  readonly method:
    | "lifecycle"
    | "messages"
    | "tools"
    | "checkpoints"
    | "values"
    | "input.requested"
    | "custom";
  readonly namespace: readonly string[];
  readonly node?: "agent" | "tools";
  /** In ms. */
  readonly timestamp: number;
  readonly data: Data;
  /** It takes back what the one before it shows: neither can be left out, though a later one shows all. */
  readonly isWithdrawal?: true;
}

export interface ProjectOptions {
  /** The thread's messages: the run's own follow those that are before its first. */
  readonly messages: readonly Message[];
  readonly state: Readonly<Record<string, unknown>>;
  /**
   * Later runs were accepted. Only the messages that the thread still has are sent, and each block of them at once: a
   * client that holds the thread's state shows no piece of an old message again.
   */
  readonly isPast: boolean;
}

/** Called with each event of a run, in order. It may begin at any of them: then it tells the thread's state first. */
export type ProtocolFold = (event: StreamEvent, at: Position, run: RunRecord) => Told[];

type DataOf<N extends EventName> = Extract<StreamEvent, { event: N }>["data"];

/** An agent at work: the run's own, or a subagent. */
interface Speaker {
  readonly namespace: readonly string[];
  /** Its thread. Undefined while it is not known how that begins. */
  messages: Message[] | undefined;
  readonly shapes: LangChainMessage[];
  writing: Writing | undefined;
  /** In a past run, the start of a block, which waits for the end of it. */
  held: Told | undefined;
}

export function project({ messages, state, isPast }: ProjectOptions): ProtocolFold {
  const kept = new Set(messages.map(({ id }) => id));
  const keptCalls = new Set(messages.flatMap(callsOf).map(({ id }) => id));
  const speakers = new Map<string, Speaker>();
  const root: Speaker = speakerOn([]);
  const shown = new Map(Object.entries(state));
  const asked: Interrupt[] = [];
  /** Calls without a result. */
  const calls = new Set<string>();
  /** Subagents of calls that the thread has no longer. */
  const gone = new Set<string>();
  let hasBegun = false;
  let isPlaced = false;
  let isStateNew = false;
  let position: Position = { epoch: 0, seq: 0 };
  let k = 0;
  let timestamp = 0;

  const tell = (method: Told["method"], namespace: readonly string[], data: Data): Told => ({
    at: { ...position, k: k++ },
    method,
    namespace,
    timestamp,
    data,
  });
  const ofAgent = (speaker: Speaker, data: readonly Data[]): Told[] =>
    data.flatMap((each) =>
      heldBack(speaker, { ...tell("messages", speaker.namespace, each), node: "agent" }),
    );
  const ofTools = (namespace: readonly string[], data: Data): Told => ({
    ...tell("tools", namespace, data),
    node: "tools",
  });

  /** Of a past run's message, the start of a block waits for its end, and then has all of it. */
  function heldBack(speaker: Speaker, told: Told): Told[] {
    if (!isPast) return [told];
    if (speaker === root && !kept.has(speaker.writing?.id ?? "")) return [];
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

  /** Where the speaker's messages stand now, and what is shown of its thread. */
  function snapshot({ namespace, messages: own, shapes }: Speaker): Told[] {
    if (!own) return [];
    if (namespace.length === 0) isStateNew = false;
    const head = headOf(own);
    const before = checkpointBefore(own, own.length);
    const checkpoint = {
      id: head.id,
      ...(before ? { parent_id: before.id } : {}),
      // What was said before may be asked again: clients keep messages of a later step.
      step: Math.max(stepOf(own, head), timestamp),
      source: own.at(-1)?.role === "user" ? "input" : "loop",
    };
    return [
      tell("checkpoints", namespace, checkpoint),
      tell("values", namespace, valuesOf(namespace, [...shapes])),
    ];
  }

  const valuesOf = (namespace: readonly string[], list: readonly LangChainMessage[]): Data =>
    namespace.length === 0
      ? { messages: list, ...stateShape(Object.fromEntries(shown)) }
      : { messages: list };

  /** Clients keep a message that they have read until a snapshot has it, and the next one does not. */
  function withdraw(speaker: Speaker, error: { message: string; code: string }): Told[] {
    const { writing: message, namespace, messages: own, shapes } = speaker;
    if (!message?.isBegun) {
      speaker.writing = undefined;
      return [];
    }
    const told = ofAgent(speaker, [{ event: "error", ...error }]);
    speaker.writing = undefined;
    if (!own || isPast) return told;
    const gone = messageShape({ id: message.id, created_at: "", role: "assistant", content: "" });
    const values = (list: readonly LangChainMessage[]): Told => ({
      ...tell("values", namespace, valuesOf(namespace, list)),
      isWithdrawal: true,
    });
    return [...told, values([...shapes, gone]), values([...shapes])];
  }

  function begin({ agent: graph_name }: RunRecord, isStart: boolean): Told[] {
    if (hasBegun) return [];
    hasBegun = true;
    if (isStart) return [tell("lifecycle", [], { event: "running", graph_name })];
    const { epoch, seq } = position;
    [position, k] = [{ epoch, seq: seq - 1 }, BEGUN_LATE];
    place(root, messages.length);
    const told = [tell("lifecycle", [], { event: "running", graph_name }), ...snapshot(root)];
    [position, k] = [{ epoch, seq }, 0];
    return told;
  }

  function place(speaker: Speaker, count: number): void {
    isPlaced = true;
    speaker.messages = messages.slice(0, count);
    speaker.shapes.splice(0, Number.POSITIVE_INFINITY, ...speaker.messages.map(messageShape));
  }

  function onMessage(speaker: Speaker, message: Message, run: RunRecord): Told[] {
    const told = whole(speaker, message, run);
    if (isPast && speaker === root && !kept.has(message.id)) return passOver(told);
    if (speaker === root) {
      const known = messages.findIndex(({ id }) => id === message.id);
      const isAhead = root.messages?.some(({ id }) => id === message.id);
      if (!isPlaced || isAhead) place(root, known >= 0 ? known : messages.length);
    } else if (!speaker.messages && message.role === "user") speaker.messages = [];
    if (!speaker.messages) return told;
    speaker.messages.push(message);
    speaker.shapes.push(messageShape(message));
    return [...told, ...snapshot(speaker)];
  }

  /** Numbers what follows as if the snapshot of a message were told that the thread has no longer. */
  function passOver(told: Told[]): Told[] {
    k += 2;
    isStateNew = false;
    return told;
  }

  /** Tells a message that was not told piece by piece. */
  function whole(speaker: Speaker, message: Message, run: RunRecord): Told[] {
    if (speaker === root && message.role === "tool") calls.delete(message.tool_call_id);
    if (message.role !== "assistant") return [];
    if (speaker === root) for (const { id } of callsOf(message)) calls.add(id);
    const written = speaker.writing;
    if (written?.id === message.id && written.isBegun) return [];
    speaker.writing = writing(message.id, metadataOf(run, message.model ?? ""));
    return ofAgent(speaker, speaker.writing.tell(message));
  }

  function onTool(namespace: readonly string[], name: string, callId: string, data: Data): Told[] {
    if (namespace.length === 0 && isGone(callId)) return [];
    const own = name === "task" ? [...namespace, namespaceOf(callId)] : namespace;
    return [ofTools(own, { ...data, tool_call_id: callId })];
  }

  function onToolEnd(
    namespace: readonly string[],
    name: string,
    { call_id, output = "", error, interrupted }: DataOf<"on_tool_end">,
  ): Told[] {
    if (interrupted) return [];
    if (error !== undefined) return onTool(namespace, name, call_id, { event: "tool-error", message: error });
    return onTool(namespace, name, call_id, { event: "tool-finished", output });
  }

  function onState({ key, value, patch }: DataOf<"on_state">): Told[] {
    if (key !== "todos" && key !== "files") return [];
    shown.set(key, patch ? merge(shown.get(key), patch) : value);
    isStateNew = true;
    return [];
  }

  function end(run: RunRecord, data: Data): Told[] {
    const { agent: graph_name } = run;
    if (isStateNew && !isPlaced && !isPast) place(root, messages.length);
    return [
      ...(isStateNew ? snapshot(root) : []),
      ...interruptsOf(asked).map(({ id, value }) =>
        tell("input.requested", [], { interrupt_id: id, payload: value }),
      ),
      tell("lifecycle", [], { ...data, graph_name }),
    ];
  }

  function done(run: RunRecord, { status, stop_reason }: DataOf<"done">): Told[] {
    if (status === "error")
      return end(run, { event: "failed", error: `The run has reached a limit: ${stop_reason}.` });
    if (status === "success") return end(run, { event: "completed" });
    const deferred = status === "interrupted" && asked.length === 0 ? [...calls] : [];
    return [
      ...deferred.map((call_id) => custom("deferred", { type: "deferred", call_id })),
      ...end(run, { event: "interrupted" }),
    ];
  }

  const isGone = (callId: string) => isPast && !keptCalls.has(callId);
  const custom = (name: string, payload: Data) => tell("custom", [], { name, payload });

  function speakerAt(path: readonly string[]): Speaker {
    if (path.length === 0) return root;
    const key = JSON.stringify(path);
    const known = speakers.get(key) ?? speakerOn(path.map(namespaceOf));
    speakers.set(key, known);
    return known;
  }

  function told(event: StreamEvent, run: RunRecord): Told[] {
    const { path = [] } = event;
    if (gone.has(path[0] ?? "")) return [];
    const speaker = speakerAt(path);
    const { namespace } = speaker;
    switch (event.event) {
      case "on_chat_model_start":
        speaker.writing = writing(event.data.message_id, metadataOf(run, event.data.model));
        return [];
      case "on_chat_model_stream":
        return ofAgent(speaker, speaker.writing?.write(event.data) ?? []);
      case "on_chat_model_end": {
        const { error, usage } = event.data;
        return error ? withdraw(speaker, error) : ofAgent(speaker, speaker.writing?.end(usage) ?? []);
      }
      case "message_discard":
        return withdraw(speaker, { code: "discarded", message: "The message is begun again." });
      case "on_message":
        return onMessage(speaker, event.data.message, run);
      case "on_tool_start": {
        const { call_id, args } = event.data;
        const input = shownArgs(event.name, args);
        return onTool(namespace, event.name, call_id, {
          event: "tool-started",
          tool_name: event.name,
          input,
        });
      }
      case "on_tool_progress": {
        const { call_id, output: delta } = event.data;
        return onTool(namespace, event.name, call_id, { event: "tool-output-delta", delta });
      }
      case "on_tool_end":
        return onToolEnd(namespace, event.name, event.data);
      case "on_subagent_start": {
        const { id, call_id: tool_call_id, agent: graph_name } = event.data;
        if (path.length === 0 && isGone(tool_call_id)) {
          gone.add(id);
          return [];
        }
        const cause = { type: "toolCall", tool_call_id };
        return [tell("lifecycle", [...namespace, namespaceOf(id)], { event: "started", graph_name, cause })];
      }
      case "on_subagent_end": {
        const { id, status } = event.data;
        if (path.length === 0 && gone.has(id)) return [];
        return [tell("lifecycle", [...namespace, namespaceOf(id)], { event: SUBAGENT_ENDS[status] })];
      }
      case "warning":
        return [custom("warning", { type: "warning", ...event.data })];
      default:
        return path.length === 0 ? ofRun(event, run) : [];
    }
  }

  /** Events of the run itself that subagents have none of. */
  function ofRun(event: StreamEvent, run: RunRecord): Told[] {
    switch (event.event) {
      case "on_interrupt":
        asked.push(event.data);
        return [];
      case "on_state":
        return onState(event.data);
      case "error":
        return end(run, { event: "failed", error: event.data.message });
      case "done":
        return done(run, event.data);
      default:
        return [];
    }
  }

  return (event, at, run) => {
    position = { epoch: at.epoch, seq: at.seq };
    k = 0;
    if ("ts" in event && event.ts !== undefined) timestamp = Date.parse(event.ts);
    const all = [...begin(run, event.event === "run_start"), ...told(event, run)];
    return isPast ? all.filter((each) => !isOver(each)) : all;
  };
}

/** The end of a past run would pass for that of the next one, its questions for open ones. */
const isOver = ({ method, namespace }: Told) =>
  method === "input.requested" || (method === "lifecycle" && namespace.length === 0);

/** A snapshot before the first event has numbers that the event before it did not use. */
const BEGUN_LATE = 60;

const speakerOn = (namespace: readonly string[]): Speaker => ({
  namespace,
  messages: undefined,
  shapes: [],
  writing: undefined,
  held: undefined,
});

const callsOf = (message: Message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []);

const namespaceOf = (id: string) => `tools:${id}`;

const metadataOf = ({ id: run_id, thread_id }: RunRecord, model: string): Data => ({
  model,
  run_id,
  thread_id,
});

const SUBAGENT_ENDS: Readonly<Record<DataOf<"on_subagent_end">["status"], string>> = {
  completed: "completed",
  failed: "failed",
  cancelled: "interrupted",
  interrupted: "interrupted",
  running: "interrupted",
};
