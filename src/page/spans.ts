// Converts the spans of a trace to rows: nested and filtered, each with its position on the time axis. Independent of
// the DOM.

import type { Span } from "../client/client.ts";
import { isIn } from "../lib/search.ts";

export interface Row {
  readonly span: Span;
  readonly depth: number;
  /** The number of spans within this one. */
  readonly within: number;
  readonly isOpen: boolean;
  /** The time since the start of the trace, in ms. */
  readonly start: number;
  readonly duration: number;
}

export interface SpanFilter {
  /** The ids of the collapsed spans. */
  readonly closed: ReadonlySet<string>;
  /** Shows only spans that contain this text, and their ancestors. */
  readonly text: string;
  readonly failedOnly: boolean;
}

/** Returns the start and end of all spans, in ms since 1970. If a span is still open, the end is at least `now`. */
export function extentOf(spans: readonly Span[], now = 0): { start: number; end: number } {
  const starts = spans.map(startOf);
  const start = starts.reduce((least, at) => Math.min(least, at), starts[0] ?? 0);
  const ends = spans.map((span) => startOf(span) + (span.duration_ms ?? 0));
  const isOpen = spans.some(({ duration_ms }) => duration_ms === undefined);
  return { start, end: ends.reduce((most, at) => Math.max(most, at), isOpen ? Math.max(now, start) : start) };
}

/** Returns the rows from top to bottom: each span before its descendants. */
export function rowsOf(
  spans: readonly Span[],
  filter: SpanFilter,
  { start, end }: { start: number; end: number },
): Row[] {
  const known = new Set(spans.map(({ id }) => id));
  const inside = Map.groupBy(spans, ({ parent_id = "" }) => (known.has(parent_id) ? parent_id : ""));
  const shown = shownOf(spans, filter);
  const rows: Row[] = [];
  const add = (span: Span, depth: number) => {
    const children = (inside.get(span.id) ?? []).filter(({ id }) => shown.has(id));
    const isOpen = !filter.closed.has(span.id);
    const from = startOf(span);
    const duration = span.duration_ms ?? Math.max(0, end - from);
    rows.push({ span, depth, within: children.length, isOpen, start: from - start, duration });
    if (isOpen) for (const child of children) add(child, depth + 1);
  };
  for (const span of inside.get("") ?? []) if (shown.has(span.id)) add(span, 0);
  return rows;
}

function shownOf(spans: readonly Span[], { text, failedOnly }: SpanFilter): ReadonlySet<string> {
  const byId = new Map(spans.map((span) => [span.id, span]));
  const wanted = text.trim().toLowerCase();
  const shown = new Set<string>();
  for (const span of spans) {
    if (failedOnly && !hasFailed(span)) continue;
    if (wanted !== "" && !isIn(textOf(span), wanted)) continue;
    for (let at: Span | undefined = span; at && !shown.has(at.id); at = byId.get(at.parent_id ?? ""))
      shown.add(at.id);
  }
  return shown;
}

const textOf = ({ name, model, agent, tool, args, output, error, tool_names = [] }: Span) =>
  [name, model, agent, tool, args, output, error?.code, error?.message, ...tool_names]
    .join("\n")
    .toLowerCase();

/** Returns the span in which a message was written or a call was executed. */
export const spanOf = (spans: readonly Span[], wanted: string): Span | undefined =>
  spans.find(({ name, call_id, message_id }) =>
    name === "llm.call" ? message_id === wanted : name === "tool.call" && call_id === wanted,
  );

/** Returns the id of a span's message or call in the run's own conversation. Subagents have their own conversations. */
export function cellOf(
  spans: readonly Span[],
  { name, message_id, call_id, parent_id }: Span,
): string | undefined {
  const byId = new Map(spans.map((span) => [span.id, span]));
  for (let at = byId.get(parent_id ?? ""); at; at = byId.get(at.parent_id ?? ""))
    if (at.name === "subagent") return undefined;
  return name === "llm.call" ? message_id : call_id;
}

const startOf = ({ started_at }: Span) => Date.parse(started_at);

export const hasFailed = ({ error, status }: Span): boolean =>
  error !== undefined || status === "error" || status === "failed";

/** Returns the title of a span: its agent, model or tool. */
export const titleOf = ({ name, agent, model, tool }: Span): string =>
  (name === "llm.call" ? model : name === "tool.call" ? tool : agent) ?? name;

/** Returns the fraction (0–1) of a model call's input that came from the provider's cache. */
export function cacheRatio({
  input_tokens,
  cache_read_tokens,
}: NonNullable<Span["usage"]>): number | undefined {
  return input_tokens > 0 ? cache_read_tokens / input_tokens : undefined;
}

export interface Sums {
  readonly calls: number;
  readonly tools: number;
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  /** In millionths. Undefined if no call has a price. */
  readonly cost?: number;
}

export function sumsOf(spans: readonly Span[]): Sums {
  const calls = spans.filter(({ name }) => name === "llm.call");
  const sum = (of: (span: Span) => number | undefined) =>
    calls.reduce((total, span) => total + (of(span) ?? 0), 0);
  return {
    calls: calls.length,
    tools: spans.filter(({ name }) => name === "tool.call").length,
    input: sum(({ usage }) => usage?.input_tokens),
    cached: sum(({ usage }) => usage?.cache_read_tokens),
    output: sum(({ usage }) => usage?.output_tokens),
    ...(calls.some(({ cost }) => cost !== undefined) ? { cost: sum(({ cost }) => cost) } : {}),
  };
}

/** Returns at most five round times between 0 and `ms`. */
export function ticksOf(ms: number): number[] {
  if (ms <= 0) return [];
  const rough = ms / 5;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * size).find((each) => each >= rough) ?? ms;
  return Array.from({ length: Math.floor(ms / step) }, (_, at) => (at + 1) * step).filter((at) => at < ms);
}
