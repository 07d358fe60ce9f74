// A run as the frames of this API's stream, in the modes that a reader wants.

import type { Message, ToolCall } from "../../../core/message.ts";
import { inCallOrder } from "../../../core/open-interrupts.ts";
import type { RunRecord } from "../../../core/records.ts";
import { LARGE_BYTES } from "../../../lib/async.ts";
import type { EventName, StreamEvent } from "../../../protocol/event.ts";
import type { Interrupt } from "../../../protocol/interrupt.ts";
import { merge } from "../../../protocol/patch.ts";
import type { LongText } from "../../json-parts.ts";
import { shownContents, shownTodos } from "../shown.ts";
import type { StreamModes } from "./modes.ts";
import { interruptsOf, messageShape, shownArgs, usageShape } from "./shapes.ts";
import { valuesText } from "./states.ts";

/** A frame before it has an id. */
export interface Shown {
  readonly event: string;
  /** JSON. To be called before the next event is folded, or not at all: a reader that has the frame needs no text. */
  readonly text: () => string | LongText;
}

/** The thread as it was found when its first event was folded. What the run itself has added since does no harm. */
export interface History {
  /** Those without a result. */
  readonly calls: readonly ToolCall[];
  readonly texts: readonly MessageText[];
  readonly state: Readonly<Record<string, unknown>>;
}

type DataOf<N extends EventName> = Extract<StreamEvent, { event: N }>["data"];
type Piece = DataOf<"on_chat_model_stream">;
type CallPiece = Extract<Piece, { tool_call: unknown }>["tool_call"];

/** Where the messages of a thread are longer, who also takes them in pieces is not sent all of them with each message. */
const REPEATED_BYTES = 256 * 1024;

/** Called with each event of a run, in order. The last event's last frame is `end`. */
export function project({ modes, subgraphs }: StreamModes, history: History) {
  const root = createFold(modes, history);
  const children = new Map<string, ReturnType<typeof createFold>>();
  return (event: StreamEvent, run: RunRecord): readonly Shown[] => {
    const path = event.path ?? [];
    if (path.length === 0) return root.fold(event, run);
    if (!subgraphs) return [];
    const namespace = path.map((id) => `tools:${id}`).join("|");
    const child = children.get(namespace) ?? createFold(modes, NOTHING, namespace);
    children.set(namespace, child);
    return child.fold(event, run);
  };
}

const NOTHING: History = { calls: [], texts: [], state: {} };

/** A message as JSON. */
export interface MessageText {
  readonly id: string;
  readonly text: string;
}

export const textOf = (message: Message): MessageText => ({
  id: message.id,
  text: JSON.stringify(messageShape(message)),
});

/** The frames with which a reader begins again when events are no longer kept: the thread as it is. */
export function asItIs(
  { modes }: StreamModes,
  { history, open, run }: { history: History; open: readonly Interrupt[]; run: RunRecord },
): Shown[] {
  const { metadata, values } = createFold(modes, history);
  return [metadata(run, run.attempt), ...values(open)];
}

/** The frames of the run's last event, which is no longer kept. */
export function endOf(run: RunRecord): Shown[] {
  const failure = run.error ? [shown("error", { error: run.error.code, message: run.error.message })] : [];
  return [...failure, END];
}

const shown = (event: string, data: unknown): Shown => ({ event, text: () => JSON.stringify(data) });
const END = shown("end", null);

/** One agent's part of a run: the root's, or under `namespace` a subagent's. */
function createFold(modes: ReadonlySet<string>, history: History, namespace?: string) {
  const isRoot = namespace === undefined;
  const messages = new MessageTexts(history, modes.has("values"));
  const open = new Map<string, Interrupt>();
  let { todos, files }: Readonly<Record<string, unknown>> = history.state;
  /** The message that is being written. */
  let writing: Writing = { id: "", text: "", reasoning: "", hasPieces: false };
  /** Whole messages that were sent in pieces. */
  let inPieces = "";
  /** Calls of the delegation tool, whose arguments are shown once they are whole, by their index. */
  const delegations = new Map<number, { id: string; name: string; args: string }>();
  const names = new Map<number, string>();
  let isStale = false;
  let hasNewState = false;
  /** What the run is given may be a whole history: of it the first and the last state are shown. */
  let input: "none" | "begun" | "over" = "none";

  const frame = (mode: string, event: string, data: unknown): Shown[] =>
    modes.has(mode) ? [shown(isRoot ? event : `${event}|${namespace}`, data)] : [];
  const meta = (node: "agent" | "tools") =>
    isRoot
      ? { langgraph_node: node }
      : { langgraph_node: node, langgraph_checkpoint_ns: namespace, checkpoint_ns: namespace };
  const tuple = (message: object, node: "agent" | "tools" = "agent") =>
    frame("messages-tuple", "messages", [message, meta(node)]);
  const piece = (more: object) => {
    writing = { ...writing, hasPieces: true };
    return tuple({ type: "AIMessageChunk", id: writing.id, content: "", ...more });
  };
  const soFar = () =>
    frame("messages", "messages/partial", [
      {
        type: "AIMessageChunk",
        id: writing.id,
        content: writing.text,
        additional_kwargs: writing.reasoning ? { reasoning_content: writing.reasoning } : {},
        response_metadata: {},
      },
    ]);

  const values = (asked: readonly Interrupt[] = []): Shown[] => {
    isStale = false;
    hasNewState = false;
    if (!modes.has("values")) return [];
    const rest = {
      ...(isRoot ? { todos: shownTodos(todos), files: shownContents(files) } : {}),
      ...(asked.length > 0 ? { __interrupt__: interruptsOf(asked) } : {}),
    };
    return [{ event: isRoot ? "values" : `values|${namespace}`, text: () => messages.values(rest) }];
  };
  /** The state after a message; later, if it is long and the reader has the message anyway. */
  const valuesAfter = ({ role }: Message): Shown[] => {
    isStale = true;
    if (input === "begun") return [];
    if (input === "none") input = "begun";
    const isLong = messages.size > REPEATED_BYTES && modes.has("messages-tuple");
    return isLong && role !== "user" && !hasNewState ? [] : values();
  };
  const valuesIfChanged = () => (isStale ? values() : []);

  const begin = (id: string): Shown[] => {
    writing = { id, text: "", reasoning: "", hasPieces: false };
    names.clear();
    delegations.clear();
    const given = input === "begun" ? valuesIfChanged() : [];
    input = "over";
    return [...given, ...frame("messages", "messages/metadata", { [id]: { metadata: meta("agent") } })];
  };
  const takeBack = (): Shown[] =>
    writing.hasPieces ? tuple({ type: "remove", id: writing.id, content: "" }) : [];
  const write = (data: Piece): Shown[] => {
    if ("delta" in data) {
      writing = { ...writing, text: writing.text + data.delta };
      return [...piece({ content: data.delta }), ...soFar()];
    }
    if ("reasoning_delta" in data) {
      const { reasoning_delta } = data;
      writing = { ...writing, reasoning: writing.reasoning + reasoning_delta };
      return [...piece({ additional_kwargs: { reasoning_content: reasoning_delta } }), ...soFar()];
    }
    return "tool_call" in data ? writeCall(data.tool_call) : [];
  };
  const chunk = (index: number, part: { id?: string; name?: string; args: string }) =>
    piece({ tool_call_chunks: [{ type: "tool_call_chunk", index, ...part }] });
  const writeCall = ({ index, id, name, args_delta }: CallPiece): Shown[] => {
    if (name !== undefined) names.set(index, name);
    if (names.get(index) !== "task")
      return chunk(index, { ...(id ? { id } : {}), ...(name ? { name } : {}), args: args_delta });
    const before = delegations.get(index);
    delegations.set(index, {
      id: id ?? before?.id ?? "",
      name: "task",
      args: (before?.args ?? "") + args_delta,
    });
    return [];
  };
  const delegated = (): Shown[] =>
    [...delegations].flatMap(([index, { id, name, args }]) =>
      chunk(index, { id, name, args: aliased(args) }),
    );
  const finish = ({ stop_reason, usage, error }: DataOf<"on_chat_model_end">): Shown[] => {
    if (error) return takeBack();
    const more = {
      ...(stop_reason ? { response_metadata: { finish_reason: stop_reason } } : {}),
      ...(usage ? { usage_metadata: usageShape(usage) } : {}),
    };
    const frames = delegated();
    if (writing.hasPieces) inPieces = writing.id;
    return writing.hasPieces ? [...frames, ...piece(more)] : frames;
  };

  const add = (message: Message): Shown[] => {
    messages.add(message);
    const whole = messageShape(message);
    if (message.role === "user" || message.role === "system") return valuesAfter(message);
    const node = message.role === "assistant" ? "agent" : "tools";
    return [
      ...(inPieces === message.id ? [] : tuple(whole, node)),
      ...frame("updates", "updates", { [node]: { messages: [whole] } }),
      ...frame("messages", "messages/complete", [whole]),
      ...valuesAfter(message),
    ];
  };
  const change = ({ key, value, patch }: DataOf<"on_state">): Shown[] => {
    if (!isRoot || (key !== "todos" && key !== "files")) return [];
    isStale = true;
    hasNewState = true;
    if (key === "todos") {
      todos = value;
      return frame("updates", "updates", { tools: { todos: shownTodos(todos) } });
    }
    files = patch ? merge(files, patch) : value;
    return frame("updates", "updates", { tools: { files: shownContents(patch ? merge({}, patch) : value) } });
  };
  const tool = (event: string, call_id: string, name: string, more: object) =>
    frame("tools", "tools", { event, toolCallId: call_id, name, ...more });

  const metadata = ({ id: run_id, thread_id }: RunRecord, attempt: number) =>
    shown("metadata", { run_id, thread_id, attempt });
  const done = ({ status, stop_reason }: DataOf<"done">): Shown[] => {
    const calls = messages.unanswered().map(({ id }) => id);
    const asked = inCallOrder([...open.values()], calls);
    if (status === "interrupted" && asked.length > 0)
      return [...frame("updates", "updates", { __interrupt__: interruptsOf(asked) }), ...values(asked), END];
    const waiting = status === "interrupted" ? messages.unanswered() : [];
    const deferred = waiting.flatMap(({ id }) =>
      frame("custom", "custom", { type: "deferred", call_id: id }),
    );
    if (status !== "error") return [...deferred, ...valuesIfChanged(), END];
    const message = `The run has reached a limit: ${stop_reason}.`;
    return [...valuesIfChanged(), shown("error", { error: stop_reason, message }), END];
  };

  const fold = (event: StreamEvent, run: RunRecord): Shown[] => {
    switch (event.event) {
      case "run_start":
        return isRoot ? [metadata(run, event.data.attempt)] : [];
      case "on_chat_model_start":
        return begin(event.data.message_id);
      case "on_chat_model_stream":
        return write(event.data);
      case "on_chat_model_end":
        return finish(event.data);
      case "message_discard":
        return takeBack();
      case "on_message":
        return add(event.data.message);
      case "on_state":
        return change(event.data);
      case "on_tool_start": {
        const { call_id, args } = event.data;
        return tool("on_tool_start", call_id, event.name, { input: shownArgs(event.name, args) });
      }
      case "on_tool_progress":
        return tool("on_tool_event", event.data.call_id, event.name, { data: event.data.output });
      case "on_tool_end": {
        const { call_id, output, error, interrupted } = event.data;
        if (interrupted) return [];
        return error === undefined
          ? tool("on_tool_end", call_id, event.name, { output: output ?? "" })
          : tool("on_tool_error", call_id, event.name, { error });
      }
      case "on_interrupt":
        open.set(event.data.id, event.data);
        return [];
      case "on_resume":
        open.delete(event.data.id);
        return [];
      case "warning":
        return frame("custom", "custom", { type: "warning", ...event.data });
      case "error": {
        const { code, message } = event.data;
        return isRoot ? [...valuesIfChanged(), shown("error", { error: code, message }), END] : [];
      }
      case "done":
        return isRoot ? done(event.data) : [];
      default:
        return [];
    }
  };
  return { fold, values, metadata };
}

interface Writing {
  readonly id: string;
  readonly text: string;
  readonly reasoning: string;
  readonly hasPieces: boolean;
}

/** The whole arguments of a delegation with the names that front ends expect; as they are, if they are no JSON object. */
function aliased(args: string): string {
  try {
    return JSON.stringify(shownArgs("task", JSON.parse(args) as Record<string, unknown>));
  } catch {
    return args;
  }
}

/** The messages of a thread as JSON, made once for each. */
class MessageTexts {
  readonly #isKept: boolean;
  readonly #messages: MessageText[];
  /** Calls without a result. */
  readonly #calls: Map<string, ToolCall>;
  size: number;

  constructor({ calls, texts }: History, isKept: boolean) {
    this.#isKept = isKept;
    this.#calls = new Map(calls.map((call) => [call.id, call]));
    this.#messages = [...texts];
    this.size = texts.reduce((size, { text }) => size + text.length, 0);
  }

  /** A message that is there already begins the run's own part: what stands behind it was found too early. */
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

  /** All of them with the rest of a state; in parts, if they are long. */
  values(rest: Readonly<Record<string, unknown>>): string | LongText {
    const texts = this.#messages.map(({ text }) => text);
    const parts = valuesText(texts, rest);
    return this.size > LARGE_BYTES ? { parts, length: this.size } : [...parts].join("");
  }
}
