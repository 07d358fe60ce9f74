// The spans of a run, derived from its events once: the run itself, its model calls, its tool calls and its subagents. A reader
// may begin in the middle of a run. It keeps the open spans and each agent's last model call, nothing else.

import type { EventName, StreamEvent } from "./event.ts";

type EventOf<N extends EventName> = Extract<StreamEvent, { event: N }>;

/** The events that open a span of each kind, that show it at work, and that close it. */
interface Marks {
  readonly run: {
    readonly start: EventOf<"run_start">;
    readonly progress: never;
    readonly end: EventOf<"done" | "error">;
  };
  /** One attempt of a model call. */
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

/** The event that opens a span of each kind, for readers of log entries that are not parsed. */
export const SPAN_STARTS = {
  run: "run_start",
  model: "on_chat_model_start",
  tool: "on_tool_start",
  subagent: "on_subagent_start",
} as const satisfies Record<SpanKind, EventName>;

/** The events in which a span within a run opens or closes. */
export const SPAN_EVENTS = [
  SPAN_STARTS.model,
  "on_chat_model_end",
  "message_discard",
  SPAN_STARTS.tool,
  "on_tool_end",
  SPAN_STARTS.subagent,
  "on_subagent_end",
] as const satisfies readonly EventName[];

/** `T`: what the handlers keep with a span. */
export interface Span<K extends SpanKind = SpanKind, T = unknown> {
  readonly kind: K;
  /** The id of the message, the tool call or the subagent; empty for the run. */
  readonly id: string;
  /** From 1, in the order in which spans opened. */
  readonly number: number;
  /** The path of the agent whose span it is. */
  readonly path: readonly string[];
  readonly start: SpanStart<K>;
  /** The tool call of a subagent; for other spans the subagent or the run. Undefined if the reader began later. */
  readonly parent: AnySpan<T> | undefined;
  /** The attempt of the same model call before this one, which failed or was discarded. */
  readonly repeats: Span<"model", T> | undefined;
  /** The result of `opened`; undefined until then. */
  readonly own: T | undefined;
}

export type AnySpan<T = unknown> = { readonly [K in SpanKind]: Span<K, T> }[SpanKind];

/** `span`: undefined if the reader began after its start. */
interface KindHandlers<K extends SpanKind, T> {
  opened?(span: Span<K, T>): T;
  progress?(event: Marks[K]["progress"]): void;
  closed?(end: SpanEnd<K>, span: Span<K, T> | undefined): void;
}

interface ModelHandlers<T> extends KindHandlers<"model", T> {
  /** Closes the span instead of `closed`: the process that was writing the message died. */
  discarded?(discard: EventOf<"message_discard">, span: Span<"model", T> | undefined): void;
  /** Another attempt of the call follows. `end`: undefined if the attempt's end comes later. */
  retried?(attempt: Span<"model", T>, end: SpanEnd<"model"> | undefined): void;
  /** No other attempt of the call follows: the agent's next event, or its own end, shows it. */
  settled?(attempt: Span<"model", T>, end: SpanEnd<"model">): void;
}

/** Called in the order in which things happen. */
export interface SpanHandlers<T> {
  readonly run?: KindHandlers<"run", T>;
  readonly model?: ModelHandlers<T>;
  readonly tool?: KindHandlers<"tool", T>;
  readonly subagent?: KindHandlers<"subagent", T>;
}

export interface SpanReader<T> {
  /** To be called with each event, in order. Events that the handlers do not need may be left out. */
  see(event: StreamEvent): void;
  /** The open spans in the order in which they opened: a span comes after the one that it lies in. */
  open(): readonly AnySpan<T>[];
}

/** The open spans of one agent. */
interface Agent<T> {
  /** The run's or the subagent's. */
  span: Span<"run", T> | Span<"subagent", T> | undefined;
  readonly open: { readonly [K in SpanKind]: Map<string, Span<K, T>> };
  /** Its last model call, until that is settled. */
  call: ModelCall<T> | undefined;
}

type Beginning<K extends SpanKind, T> = Pick<Span<K, T>, "kind" | "id" | "start"> &
  Partial<Pick<Span<K, T>, "repeats">>;

interface ModelCall<T> {
  readonly span: Span<"model", T>;
  end: SpanEnd<"model"> | undefined;
  isRetried: boolean;
}

const AT_ROOT: readonly string[] = [];

export function readSpans<T = unknown>(on: SpanHandlers<T>): SpanReader<T> {
  const root = newAgent<T>();
  /** The subagents at work, by path. */
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
    { kind, id, start, repeats }: Beginning<K, T>,
    opened: ((span: Span<K, T>) => T) | undefined,
  ): Span<K, T> {
    const { path = AT_ROOT } = start;
    const parent = parentOf(start, agent);
    const span = { kind, id, number: ++count, path, start, parent, repeats, own: undefined as T | undefined };
    agent.open[kind].set(id, span);
    span.own = opened?.(span);
    return span;
  }

  function end<K extends SpanKind>({ open }: Agent<T>, kind: K, id: string): Span<K, T> | undefined {
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
