// Converts a run to the frames of this API's stream, in the modes that a reader requests.

import type { Message, ToolCall } from "../../agent/core/message.ts";
import { inCallOrder } from "../../agent/core/open-interrupts.ts";
import type { RunRecord } from "../../agent/core/records.ts";
import { LARGE_BYTES } from "../../lib/ticks.ts";
import { type AgentHandlers, type AgentReader, readSubagent } from "../../protocol/agent-reader.ts";
import { type End, failureOf } from "../../protocol/end.ts";
import type { Interrupt } from "../../protocol/interrupt.ts";
import { merge } from "../../protocol/patch.ts";
import { readTurn, type TurnHandlers } from "../../protocol/turn-reader.ts";
import type { LongText } from "../../server/http/json-parts.ts";
import { shownContents, shownTodos } from "../shown.ts";
import { interruptsOf, messageShape, shownArgs, usageShape } from "./history.ts";
import type { StreamModes } from "./modes.ts";
import { valuesText } from "./resources/states.ts";

/** A frame before it has an id. */
export interface LangGraphFrame {
  readonly event: string;
  /**
   * Returns the JSON. Call it before the next event is folded, or not at all, because a reader that already has the
   * frame needs no text.
   */
  readonly text: () => string | LongText;
}

/** The thread when its first event was folded. It may already contain messages of the run itself. */
export interface InitialThread {
  /** The calls that have no result. */
  readonly calls: readonly ToolCall[];
  readonly texts: readonly MessageText[];
  readonly state: Readonly<Record<string, unknown>>;
}

/**
 * If a thread's messages exceed this size in bytes, a reader that also receives pieces does not get the whole state
 * with each message.
 */
const REPEATED_BYTES = 256 * 1024;

/** Called with each event of a run, in order. The last frame for the last event is `end`. */
export function project({ modes, subgraphs }: StreamModes, history: InitialThread) {
  const children = new Map<string, AgentReader<LangGraphFrame>>();
  const childAt = (path: readonly string[]): AgentReader<LangGraphFrame> => {
    const namespace = path.map((id) => `tools:${id}`).join("|");
    const child = children.get(namespace) ?? readSubagent(createAgent(modes, NOTHING, namespace).table);
    children.set(namespace, child);
    return child;
  };
  const root = createRoot(modes, history);
  return readTurn<LangGraphFrame, RunRecord>(
    {
      ...root.table,
      subagent: (event, path) => (subgraphs && path.length > 0 ? childAt(path).see(event) : []),
    },
    { files: history.state.files },
  );
}

const NOTHING: InitialThread = { calls: [], texts: [], state: {} };

/** A message as JSON. */
export interface MessageText {
  readonly id: string;
  readonly text: string;
}

export const textOf = (message: Message): MessageText => ({
  id: message.id,
  text: JSON.stringify(messageShape(message)),
});

/** Returns frames of the current thread, with which a reader starts if events are no longer stored. */
export function asItIs(
  { modes }: StreamModes,
  { history, open, run }: { history: InitialThread; open: readonly Interrupt[]; run: RunRecord },
): LangGraphFrame[] {
  return [metadata(run, run.attempt), ...createRoot(modes, history).values(open)];
}

/** Returns the frames for the run's last event, if that event is no longer stored. */
export function endOf(run: RunRecord): LangGraphFrame[] {
  const failure = failureOf(run);
  return failure ? [shown("error", { error: failure.code, message: failure.message }), END] : [END];
}

const shown = (event: string, data: unknown): LangGraphFrame => ({ event, text: () => JSON.stringify(data) });
const END = shown("end", null);

const metadata = ({ id: run_id, thread_id }: RunRecord, attempt: number) =>
  shown("metadata", { run_id, thread_id, attempt });

/** Handles the run itself: its agent, its state and its end. */
function createRoot(modes: ReadonlySet<string>, history: InitialThread) {
  let { todos, files } = history.state;
  const stateNow = () => ({ todos: shownTodos(todos), files: shownContents(files) });
  const { table, frame, messages, values, valuesIfChanged, stateChanged } = createAgent(
    modes,
    history,
    undefined,
    stateNow,
  );

  const updated = (changes: object): LangGraphFrame[] => {
    stateChanged();
    return frame("updates", "updates", { tools: changes });
  };

  const endOf = ({ as, status, reason, message, questions }: End): LangGraphFrame[] => {
    if (as === "failed" || as === "limit")
      return [...valuesIfChanged(), shown("error", { error: reason, message }), END];
    const calls = messages.unanswered().map(({ id }) => id);
    const asked = status === "interrupted" ? inCallOrder(questions, calls) : [];
    if (asked.length > 0)
      return [...frame("updates", "updates", { __interrupt__: interruptsOf(asked) }), ...values(asked), END];
    const deferred = (status === "interrupted" ? calls : []).flatMap((call_id) =>
      frame("custom", "custom", { type: "deferred", call_id }),
    );
    return [...deferred, ...valuesIfChanged(), END];
  };

  const rows: Partial<TurnHandlers<LangGraphFrame, RunRecord>> = {
    ...table,
    run: (run, { attempt }) => [metadata(run, attempt)],
    todos(value) {
      todos = value;
      return updated({ todos: shownTodos(value) });
    },
    files(value, { patch }) {
      files = value;
      return updated({ files: shownContents(patch ? merge({}, patch) : value) });
    },
    end: endOf,
  };
  return { table: rows, values };
}

/**
 * Handles one agent's part of a run: the run's own agent, or a subagent under `namespace`. `stateNow` returns its state
 * without messages.
 */
function createAgent(
  modes: ReadonlySet<string>,
  history: InitialThread,
  namespace?: string,
  stateNow: () => object = () => ({}),
) {
  const isRoot = namespace === undefined;
  const messages = new MessageTexts(history, modes.has("values"));
  /** The message in progress. */
  let progress: MessageProgress = { id: "", text: "", reasoning: "", hasPieces: false };
  /** The calls of the delegation tool, by index. Their arguments are sent once they are complete. */
  const delegations = new Map<number, { id: string; name: string; args: string }>();
  const names = new Map<number, string>();
  let isStale = false;
  let hasNewState = false;
  /** The input of a run may be a whole history, so only its first and last states are sent. */
  let input: "none" | "begun" | "over" = "none";

  const frame = (mode: string, event: string, data: unknown): LangGraphFrame[] =>
    modes.has(mode) ? [shown(isRoot ? event : `${event}|${namespace}`, data)] : [];
  const meta = (node: "agent" | "tools") =>
    isRoot
      ? { langgraph_node: node }
      : { langgraph_node: node, langgraph_checkpoint_ns: namespace, checkpoint_ns: namespace };
  const tuple = (message: object, node: "agent" | "tools" = "agent") =>
    frame("messages-tuple", "messages", [message, meta(node)]);
  const piece = (more: object) => {
    progress = { ...progress, hasPieces: true };
    return tuple({ type: "AIMessageChunk", id: progress.id, content: "", ...more });
  };
  const soFar = () =>
    frame("messages", "messages/partial", [
      {
        type: "AIMessageChunk",
        id: progress.id,
        content: progress.text,
        additional_kwargs: progress.reasoning ? { reasoning_content: progress.reasoning } : {},
        response_metadata: {},
      },
    ]);

  const values = (asked: readonly Interrupt[] = []): LangGraphFrame[] => {
    isStale = false;
    hasNewState = false;
    if (!modes.has("values")) return [];
    const rest = {
      ...stateNow(),
      ...(asked.length > 0 ? { __interrupt__: interruptsOf(asked) } : {}),
    };
    return [{ event: isRoot ? "values" : `values|${namespace}`, text: () => messages.values(rest) }];
  };
  /** Returns the state after a message. A long state is delayed if the reader gets the message anyway. */
  const valuesAfter = ({ role }: Message): LangGraphFrame[] => {
    isStale = true;
    if (input === "begun") return [];
    if (input === "none") input = "begun";
    const isLong = messages.size > REPEATED_BYTES && modes.has("messages-tuple");
    return isLong && role !== "user" && !hasNewState ? [] : values();
  };
  const valuesIfChanged = () => (isStale ? values() : []);
  const stateChanged = () => {
    isStale = true;
    hasNewState = true;
  };

  const takeBack = (): LangGraphFrame[] =>
    progress.hasPieces ? tuple({ type: "remove", id: progress.id, content: "" }) : [];
  const chunk = (index: number, part: { id?: string; name?: string; args: string }) =>
    piece({ tool_call_chunks: [{ type: "tool_call_chunk", index, ...part }] });
  const delegated = (): LangGraphFrame[] =>
    [...delegations].flatMap(([index, { id, name, args }]) =>
      chunk(index, { id, name, args: aliased(args) }),
    );

  const given = (message: Message): LangGraphFrame[] => {
    messages.add(message);
    return valuesAfter(message);
  };
  const added = (message: Message, node: "agent" | "tools", isStreamed: boolean): LangGraphFrame[] => {
    messages.add(message);
    const whole = messageShape(message);
    return [
      ...(isStreamed ? [] : tuple(whole, node)),
      ...frame("updates", "updates", { [node]: { messages: [whole] } }),
      ...frame("messages", "messages/complete", [whole]),
      ...valuesAfter(message),
    ];
  };
  const tool = (event: string, call_id: string, name: string, more: object) =>
    frame("tools", "tools", { event, toolCallId: call_id, name, ...more });

  const table: Partial<AgentHandlers<LangGraphFrame>> = {
    step({ id }) {
      progress = { id, text: "", reasoning: "", hasPieces: false };
      names.clear();
      delegations.clear();
      const inputs = input === "begun" ? valuesIfChanged() : [];
      input = "over";
      return [...inputs, ...frame("messages", "messages/metadata", { [id]: { metadata: meta("agent") } })];
    },
    delta(kind, text) {
      if (kind === "text") {
        progress = { ...progress, text: progress.text + text };
        return [...piece({ content: text }), ...soFar()];
      }
      progress = { ...progress, reasoning: progress.reasoning + text };
      return [...piece({ additional_kwargs: { reasoning_content: text } }), ...soFar()];
    },
    callDelta({ index, id, name, args_delta }) {
      if (name !== undefined) names.set(index, name);
      if (names.get(index) !== "task")
        return chunk(index, { ...(id ? { id } : {}), ...(name ? { name } : {}), args: args_delta });
      const before = delegations.get(index);
      const args = (before?.args ?? "") + args_delta;
      delegations.set(index, { id: id ?? before?.id ?? "", name: "task", args });
      return [];
    },
    stepEnd({ failed, stop_reason, usage }) {
      if (failed) return takeBack();
      const frames = delegated();
      if (!progress.hasPieces) return frames;
      const more = {
        ...(stop_reason ? { response_metadata: { finish_reason: stop_reason } } : {}),
        ...(usage ? { usage_metadata: usageShape(usage) } : {}),
      };
      return [...frames, ...piece(more)];
    },
    user: given,
    system: given,
    assistant: (message, isStreamed) => added(message, "agent", isStreamed),
    result: (message) => added(message, "tools", false),
    toolStart: (name, { call_id, args }) =>
      tool("on_tool_start", call_id, name, { input: shownArgs(name, args) }),
    toolProgress: (name, { call_id, output }) => tool("on_tool_event", call_id, name, { data: output }),
    toolEnd(name, { call_id, output, error, interrupted }) {
      if (interrupted) return [];
      return error === undefined
        ? tool("on_tool_end", call_id, name, { output: output ?? "" })
        : tool("on_tool_error", call_id, name, { error });
    },
    warning: (data) => frame("custom", "custom", { type: "warning", ...data }),
  };
  return { table, frame, messages, values, valuesIfChanged, stateChanged };
}

interface MessageProgress {
  readonly id: string;
  readonly text: string;
  readonly reasoning: string;
  readonly hasPieces: boolean;
}

/**
 * Returns the complete arguments of a delegation under the names that front ends expect. Returns them unchanged if they
 * are not a JSON object.
 */
function aliased(args: string): string {
  try {
    return JSON.stringify(shownArgs("task", JSON.parse(args) as Record<string, unknown>));
  } catch {
    return args;
  }
}

/** The messages of a thread as JSON. Each is converted only once. */
class MessageTexts {
  readonly #isKept: boolean;
  readonly #messages: MessageText[];
  /** The calls that have no result. */
  readonly #calls: Map<string, ToolCall>;
  size: number;

  constructor({ calls, texts }: InitialThread, isKept: boolean) {
    this.#isKept = isKept;
    this.#calls = new Map(calls.map((call) => [call.id, call]));
    this.#messages = [...texts];
    this.size = texts.reduce((size, { text }) => size + text.length, 0);
  }

  /**
   * A message that already exists is the first of the run's own messages. The messages after it are removed, and their
   * events add them again.
   */
  add(message: Message): void {
    if (message.role === "assistant")
      for (const call of message.tool_calls ?? []) this.#calls.set(call.id, call);
    if (message.role === "tool") this.#calls.delete(message.tool_call_id);
    if (!this.#isKept) return;
    const at = this.#messages.findIndex(({ id }) => id === message.id);
    if (at >= 0) for (const { text } of this.#messages.splice(at)) this.size -= text.length;
    const added = textOf(message);
    this.size += added.text.length;
    this.#messages.push(added);
  }

  unanswered = () => [...this.#calls.values()];

  /** Returns all messages with the rest of a state. If they are long, the text is in parts. */
  values(rest: Readonly<Record<string, unknown>>): string | LongText {
    const texts = this.#messages.map(({ text }) => text);
    const parts = valuesText(texts, rest);
    return this.size > LARGE_BYTES ? { parts, length: this.size } : [...parts].join("");
  }
}
