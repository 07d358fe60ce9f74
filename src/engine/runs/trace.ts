// A run's trace contains spans for the run, its model calls, tool calls and subagents. It is computed from the log, so
// nothing else needs to be stored.

import { z } from "zod";
import { type Message, Usage } from "../../agent/core/message.ts";
import { storedEvent } from "../../agent/core/stored-json.ts";
import type { EventLog, RunKey } from "../../agent/core/stores.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { firstChars } from "../../lib/text.ts";
import { ErrorShape, type EventName, type StreamEvent } from "../../protocol/event.ts";
import { type AnySpan, readSpans, SPAN_EVENTS, type SpanEnd } from "../../protocol/span-reader.ts";
import type { Quotas } from "../quotas/index.ts";
import { readLogRange } from "./follow.ts";

/** Previews are short so that a trace does not become a second copy of the thread. */
const PREVIEW_CHARS = 500;
const MAX_SPANS = 2_000;

const Preview = z.string().optional().describe(`The first ${PREVIEW_CHARS} characters of the arguments.`);

export const TraceSpan = z
  .object({
    id: z.string(),
    parent_id: z.string().optional().describe("Id of the enclosing span. Absent for the run itself."),
    name: z.enum(["run", "llm.call", "tool.call", "subagent"]),
    started_at: z.iso.datetime(),
    duration_ms: z.number().optional().describe("Duration in milliseconds. Absent while the span is open."),
    model: z.string().optional(),
    agent: z.string().optional(),
    tool: z.string().optional(),
    call_id: z.string().optional(),
    message_id: z
      .string()
      .optional()
      .describe("Id of the message that the model call wrote. Absent if it wrote none."),
    number: z.int().optional().describe("For a model call: its number within the run, counted from 1."),
    message_count: z.int().optional().describe("Number of messages sent to the model."),
    content_length: z.int().optional().describe("Length of the model's text in characters."),
    tool_calls_count: z.int().optional(),
    tool_names: z.array(z.string()).optional().describe("Names of the tools that the model called."),
    args: Preview,
    output: Preview,
    status: z.string().optional(),
    stop_reason: z.string().optional(),
    usage: Usage.optional(),
    cost: z
      .int()
      .optional()
      .describe("Cost of a model call, in millionths of the currency. Absent if the model has no price."),
    first_token_ms: z
      .number()
      .optional()
      .describe("Milliseconds from the request to the model's first delta."),
    error: ErrorShape.partial({ code: true }).optional(),
  })
  .meta({ id: "Span" });
export type TraceSpan = z.infer<typeof TraceSpan>;

export const Trace = z
  .object({
    spans: z.array(TraceSpan).describe(`The first ${MAX_SPANS} spans, in the order in which they started.`),
    is_whole: z.boolean().describe("True if `spans` contains all spans so far."),
  })
  .meta({ id: "Trace" });
export type Trace = z.infer<typeof Trace>;

/** For a run in progress, returns the spans so far. Throws `events_expired`. */
export async function traceOf(
  log: EventLog,
  run: RunKey,
  { costOf }: Pick<Quotas, "costOf">,
): Promise<Trace> {
  const { last } = await log.bounds(run);
  const tracer = createTracer(costOf);
  for await (const entry of readLogRange(log, run, { after: 0, last }))
    if (TRACED.has(entry.event)) tracer.see(storedEvent(entry));
  return tracer.trace();
}

const TRACED: ReadonlySet<EventName> = new Set([...SPAN_EVENTS, "run_start", "done", "error", "on_message"]);
const CRASHED = { message: "The process crashed; the model call was repeated." };

type About = Omit<TraceSpan, "id" | "parent_id" | "started_at">;
type OpenSpan = AnySpan<TraceSpan | undefined>;

function createTracer(costOf: Quotas["costOf"]) {
  const spans: TraceSpan[] = [];
  let is_whole = true;
  /** The number of model calls made by the run itself so far. */
  let calls = 0;
  /** The model calls whose message has not arrived yet, by message id. */
  const unanswered = new Map<string, TraceSpan>();

  function begin({ number, start, parent }: OpenSpan, about: About): TraceSpan | undefined {
    is_whole &&= spans.length < MAX_SPANS;
    if (!is_whole) return undefined;
    const place = omitUndefined({ parent_id: parent?.own?.id });
    const span = { id: String(number), ...place, ...about, started_at: timeOf(start) };
    spans.push(span);
    return span;
  }

  function end(event: StreamEvent, opened: OpenSpan | undefined, about: Partial<About>): void {
    const span = opened?.own;
    if (!span) return;
    const duration_ms = Date.parse(timeOf(event)) - Date.parse(span.started_at);
    Object.assign(span, { duration_ms }, about);
  }

  /** Adds the content of a message to its model call. */
  function answer(message: Message): void {
    const span = unanswered.get(message.id);
    if (!span || message.role !== "assistant") return;
    unanswered.delete(message.id);
    const { content, tool_calls = [] } = message;
    Object.assign(span, {
      content_length: content.length,
      tool_calls_count: tool_calls.length,
      ...(tool_calls.length > 0 ? { tool_names: tool_calls.map(({ name }) => name) } : {}),
      ...(content === "" ? {} : { output: preview(content) }),
    });
  }

  const reader = readSpans<TraceSpan | undefined>({
    run: {
      opened(opened) {
        const { agent, model } = opened.start.data;
        return begin(opened, { name: "run", agent, model });
      },
      closed: (event, opened) => end(event, opened, endOfRun(event)),
    },
    model: {
      opened(opened) {
        const { model, message_count } = opened.start.data;
        const number = opened.path.length === 0 ? ++calls : undefined;
        const about = { model, message_id: opened.id, ...omitUndefined({ number, message_count }) };
        const span = begin(opened, { name: "llm.call", ...about });
        if (span) unanswered.set(opened.id, span);
        return span;
      },
      closed(event, opened) {
        const { stop_reason, usage, first_token_ms, error } = event.data;
        const cost = usage && costOf(opened?.start.data.model ?? "", usage);
        end(event, opened, omitUndefined({ stop_reason, usage, first_token_ms, error, cost }));
      },
      discarded: (event, opened) => end(event, opened, { error: CRASHED }),
    },
    tool: {
      opened(opened) {
        const { name: tool, data } = opened.start;
        const args = preview(JSON.stringify(data.args));
        return begin(opened, { name: "tool.call", tool, call_id: opened.id, args });
      },
      closed: (event, opened) => end(event, opened, endOfTool(event)),
    },
    subagent: {
      opened(opened) {
        const { agent, call_id } = opened.start.data;
        return begin(opened, { name: "subagent", agent, call_id });
      },
      closed(event, opened) {
        const { status, summary, usage } = event.data;
        end(event, opened, { status, output: preview(summary), ...omitUndefined({ usage }) });
      },
    },
  });

  return {
    see(event: StreamEvent): void {
      reader.see(event);
      if (event.event === "on_message") answer(event.data.message);
    },
    trace: (): Trace => ({ spans, is_whole }),
  };
}

function endOfTool({ data }: SpanEnd<"tool">): Partial<About> {
  const { output, error, interrupted, duration_ms } = data;
  const about = {
    output: output === undefined ? undefined : preview(output),
    error: error === undefined ? undefined : { message: preview(error) },
    status: interrupted ? "interrupted" : undefined,
  };
  return { ...omitUndefined(about), duration_ms };
}

function endOfRun(event: SpanEnd<"run">): Partial<About> {
  if (event.event === "done") {
    const { status, stop_reason, usage } = event.data;
    return { status, stop_reason, usage };
  }
  const { usage, ...error } = event.data;
  return { status: "error", error, ...omitUndefined({ usage }) };
}

const preview = (text: string) => firstChars(text, PREVIEW_CHARS);

/** The writer adds a timestamp to every event that a trace reads. */
const timeOf = (event: StreamEvent) => ("ts" in event && event.ts) || new Date(0).toISOString();
