// Derives the spans of a run from its events: the run itself, its model calls, its tool calls and its subagents. A
// reader can begin in the middle of a run. It stores only the open spans and each agent's last model call.

import type { EventName, StreamEvent } from "./event.ts";

type EventOf<N extends EventName> = Extract<StreamEvent, { event: N }>;

/** The events that open a span of each kind, show its progress, and close it. */
interface Marks {
  readonly run: {
    readonly start: EventOf<"run_start">;
    readonly progress: never;
    readonly end: EventOf<"done" | "error">;
  };
  /** One attempt at a model call. */
  readonly model: {
    readonly start: EventOf<"on_chat_model_start">;
    readonly progress: EventOf<"on_chat_model_stream">;
    readonly end: EventOf<"on_chat_model_end">;
  };
  readonly tool: {
    readonly start: EventOf<"on_tool_start">;
    readonly progress: EventOf<"on_tool_progress">;
    readonly end: EventOf<"on_tool_end">;
  };
  readonly subagent: {
    readonly start: EventOf<"on_subagent_start">;
    readonly progress: never;
    readonly end: EventOf<"on_subagent_end">;
  };
}
export type SpanKind = keyof Marks;
export type SpanStart<K extends SpanKind = SpanKind> = Marks[K]["start"];
export type SpanEnd<K extends SpanKind = SpanKind> = Marks[K]["end"];

/** The event that opens a span of each kind, for readers of unparsed log entries. */
export const SPAN_STARTS = {
  run: "run_start",
  model: "on_chat_model_start",
  tool: "on_tool_start",
  subagent: "on_subagent_start",
} as const satisfies Record<SpanKind, EventName>;

/** The events that open or close a span within a run. */
export const SPAN_EVENTS = [
  SPAN_STARTS.model,
  "on_chat_model_end",
  "message_discard",
  SPAN_STARTS.tool,
  "on_tool_end",
  SPAN_STARTS.subagent,
  "on_subagent_end",
] as const satisfies readonly EventName[];

/** `T` is the type of the value that handlers attach to a span. */
export interface EventSpan<K extends SpanKind = SpanKind, T = unknown> {
  readonly kind: K;
  /** The id of the message, the tool call or the subagent. Empty for the run. */
  readonly id: string;
  /** The number of the span, starting at 1, in the order in which spans opened. */
  readonly number: number;
  /** The path of the agent that the span belongs to. */
  readonly path: readonly string[];
  readonly start: SpanStart<K>;
  /** For a subagent, the tool call; for other spans, the subagent or the run. Undefined if the reader began later. */
  readonly parent: AnySpan<T> | undefined;
  /** The previous attempt at the same model call, which failed or was discarded. */
  readonly repeats: EventSpan<"model", T> | undefined;
  /** The return value of `opened`. Undefined until then. */
  readonly own: T | undefined;
}

export type AnySpan<T = unknown> = { readonly [K in SpanKind]: EventSpan<K, T> }[SpanKind];

/** `span` is undefined if the reader began after the span's start. */
interface KindHandlers<K extends SpanKind, T> {
  opened?(span: EventSpan<K, T>): T;
  progress?(event: Marks[K]["progress"]): void;
  closed?(end: SpanEnd<K>, span: EventSpan<K, T> | undefined): void;
}

interface ModelHandlers<T> extends KindHandlers<"model", T> {
  /** Called instead of `closed` if the process that was writing the message died. */
  discarded?(discard: EventOf<"message_discard">, span: EventSpan<"model", T> | undefined): void;
  /** Another attempt at the call follows. `end` is undefined if the attempt's end comes later. */
  retried?(attempt: EventSpan<"model", T>, end: SpanEnd<"model"> | undefined): void;
  /** No other attempt at the call follows, as shown by the agent's next event or its end. */
  settled?(attempt: EventSpan<"model", T>, end: SpanEnd<"model">): void;
}

/** Handlers are called in the order of the events. */
export interface SpanHandlers<T> {
  readonly run?: KindHandlers<"run", T>;
  readonly model?: ModelHandlers<T>;
  readonly tool?: KindHandlers<"tool", T>;
  readonly subagent?: KindHandlers<"subagent", T>;
}

export interface SpanReader<T> {
  /** Call this with each event, in order. Events that the handlers do not need can be omitted. */
  see(event: StreamEvent): void;
  /** Returns the open spans in the order in which they opened, so a parent comes before its children. */
  open(): readonly AnySpan<T>[];
}

/** The open spans of one agent. */
interface Agent<T> {
  /** The span of the run or the subagent. */
  span: EventSpan<"run", T> | EventSpan<"subagent", T> | undefined;
  readonly open: { readonly [K in SpanKind]: Map<string, EventSpan<K, T>> };
  /** The agent's last model call, until it is settled. */
  call: ModelCall<T> | undefined;
}

type NewSpan<K extends SpanKind, T> = Pick<EventSpan<K, T>, "kind" | "id" | "start"> &
  Partial<Pick<EventSpan<K, T>, "repeats">>;

interface ModelCall<T> {
  readonly span: EventSpan<"model", T>;
  end: SpanEnd<"model"> | undefined;
  isRetried: boolean;
}

const AT_ROOT: readonly string[] = [];

export function readSpans<T = unknown>(on: SpanHandlers<T>): SpanReader<T> {
  const root = newAgent<T>();
  /** The working subagents by path. */
  const subagents = new Map<string, Agent<T>>();
  let count = 0;

  function agentAt(path: readonly string[]): Agent<T> {
    if (path.length === 0) return root;
    const place = placeOf(path);
    const agent = subagents.get(place) ?? newAgent<T>();
    subagents.set(place, agent);
    return agent;
  }

  function begin<K extends SpanKind>(
    agent: Agent<T>,
    { kind, id, start, repeats }: NewSpan<K, T>,
    opened: ((span: EventSpan<K, T>) => T) | undefined,
  ): EventSpan<K, T> {
    const { path = AT_ROOT } = start;
    const parent = parentOf(start, agent);
    const span = { kind, id, number: ++count, path, start, parent, repeats, own: undefined as T | undefined };
    agent.open[kind].set(id, span);
    span.own = opened?.(span);
    return span;
  }

  function end<K extends SpanKind>({ open }: Agent<T>, kind: K, id: string): EventSpan<K, T> | undefined {
    const span = open[kind].get(id);
    open[kind].delete(id);
    return span;
  }

  function settle(agent: Agent<T>): void {
    const { call } = agent;
    agent.call = undefined;
    if (call?.end) on.model?.settled?.(call.span, call.end);
  }

  function retry({ call }: Agent<T>): void {
    if (!call) return;
    call.isRetried = true;
    on.model?.retried?.(call.span, call.end);
  }

  function see(event: StreamEvent): void {
    if (event.event === "on_chat_model_stream") {
      on.model?.progress?.(event);
      return;
    }
    const { path = AT_ROOT } = event;
    const agent = agentAt(path);
    if (event.event === "warning" && event.data.code === "model_retry") {
      retry(agent);
      return;
    }
    if (agent.call?.end && !agent.call.isRetried) settle(agent);
    switch (event.event) {
      case "run_start":
        agent.span = begin(agent, { kind: "run", id: "", start: event }, on.run?.opened);
        return;
      case "done":
      case "error": {
        for (const each of [...subagents.values(), root]) settle(each);
        on.run?.closed?.(event, end(agent, "run", ""));
        return;
      }
      case "on_chat_model_start": {
        const repeats = agent.call?.isRetried ? agent.call.span : undefined;
        const start = { kind: "model", id: event.data.message_id, start: event, repeats } as const;
        const span = begin(agent, start, on.model?.opened);
        agent.call = { span, end: undefined, isRetried: false };
        return;
      }
      case "on_chat_model_end": {
        const span = end(agent, "model", event.data.message_id);
        if (agent.call && agent.call.span === span) agent.call.end = event;
        on.model?.closed?.(event, span);
        return;
      }
      case "message_discard": {
        const span = end(agent, "model", event.data.message_id);
        if (agent.call && agent.call.span === span) agent.call.isRetried = true;
        on.model?.discarded?.(event, span);
        return;
      }
      case "on_tool_start":
        begin(agent, { kind: "tool", id: event.data.call_id, start: event }, on.tool?.opened);
        return;
      case "on_tool_progress":
        on.tool?.progress?.(event);
        return;
      case "on_tool_end": {
        const span = end(agent, "tool", event.data.call_id);
        on.tool?.closed?.(event, span);
        return;
      }
      case "on_subagent_start": {
        const { id } = event.data;
        const child = agentAt([...path, id]);
        child.span = begin(agent, { kind: "subagent", id, start: event }, on.subagent?.opened);
        return;
      }
      case "on_subagent_end": {
        const { id } = event.data;
        settle(agentAt([...path, id]));
        subagents.delete(placeOf([...path, id]));
        const span = end(agent, "subagent", id);
        on.subagent?.closed?.(event, span);
      }
    }
  }

  return {
    see,
    open() {
      const all = [root, ...subagents.values()].flatMap(({ open }) =>
        [open.run, open.model, open.tool, open.subagent].flatMap((each) => [...each.values()]),
      );
      return all.sort((a, b) => a.number - b.number);
    },
  };
}

function newAgent<T>(): Agent<T> {
  const open = { run: new Map(), model: new Map(), tool: new Map(), subagent: new Map() };
  return { span: undefined, open, call: undefined };
}

function parentOf<T>(start: SpanStart, { span, open }: Agent<T>): AnySpan<T> | undefined {
  return start.event === "on_subagent_start" ? open.tool.get(start.data.call_id) : span;
}

const placeOf = (path: readonly string[]) => JSON.stringify(path);
