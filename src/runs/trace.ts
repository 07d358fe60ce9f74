// A run's trace: spans for the run, its model calls, tool calls and subagents. Computed from the log; nothing else is stored.

import { z } from "zod";
import { type Message, Usage } from "../core/message.ts";
import type { EventLog, RunKey } from "../core/stores.ts";
import { freeTurn, ownTurn } from "../lib/async.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";
import { firstChars } from "../lib/text.ts";
import { ErrorShape, type EventName, type StreamEvent } from "../protocol/event.ts";
import type { Quotas } from "../quotas/index.ts";
import { readLogRange } from "./follow.ts";

/** A trace is no second copy of the thread. */
const PREVIEW_CHARS = 500;
const MAX_SPANS = 2_000;
/** Of events that are read in one turn of the event loop. */
const SLICE_CHARS = 256 * 1024;

const Preview = z.string().optional().describe(`The first ${PREVIEW_CHARS} characters.`);

export const Span = z
  .object({
    id: z.string(),
    parent_id: z.string().optional().describe("The enclosing span. Absent for the run itself."),
    name: z.enum(["run", "llm.call", "tool.call", "subagent"]),
    started_at: z.iso.datetime(),
    duration_ms: z.number().optional().describe("Absent while the span is open."),
    model: z.string().optional(),
    agent: z.string().optional(),
    tool: z.string().optional(),
    call_id: z.string().optional(),
    message_id: z
      .string()
      .optional()
      .describe("Of a model call: the message that it wrote, if it wrote one."),
    number: z.int().optional().describe("Of a model call: which one of the run's own it is, from 1."),
    message_count: z.int().optional().describe("Messages that the model was sent."),
    content_length: z.int().optional().describe("Characters of the model's text."),
    tool_calls_count: z.int().optional(),
    tool_names: z.array(z.string()).optional().describe("The tools that the model called."),
    args: Preview,
    output: Preview,
    status: z.string().optional(),
    stop_reason: z.string().optional(),
    usage: Usage.optional(),
    cost: z.int().optional().describe("Of a model call, in millionths. Absent when its model has no price."),
    first_token_ms: z.number().optional().describe("From the request to the model's first delta."),
    error: ErrorShape.partial({ code: true }).optional(),
  })
  .meta({ id: "Span" });
export type Span = z.infer<typeof Span>;

export const Trace = z
  .object({
    spans: z.array(Span).describe(`In the order in which they started; the first ${MAX_SPANS}.`),
    is_whole: z.boolean().describe("Whether these are all spans so far."),
  })
  .meta({ id: "Trace" });
export type Trace = z.infer<typeof Trace>;

/** Of a run in progress, the spans so far. Throws `events_expired`. */
export async function traceOf(
  log: EventLog,
  run: RunKey,
  { costOf }: Pick<Quotas, "costOf">,
): Promise<Trace> {
  const { last } = await log.bounds(run);
  await freeTurn(run.owner.tenant);
  let left = SLICE_CHARS;
  const trace: Mutable = { spans: [], is_whole: true, open: new Map(), answers: new Map(), calls: 0, costOf };
  // Events were checked when they were appended.
  for await (const { event, json } of readLogRange(log, run, { after: 0, last })) {
    if (TOLD.has(event)) see(JSON.parse(json) as StreamEvent, trace);
    left -= json.length;
    if (left > 0) continue;
    await ownTurn(run.owner.tenant);
    left = SLICE_CHARS;
  }
  return { spans: trace.spans, is_whole: trace.is_whole };
}

const TOLD: ReadonlySet<EventName> = new Set([
  "run_start",
  "on_chat_model_start",
  "on_chat_model_end",
  "message_discard",
  "done",
  "on_tool_start",
  "on_tool_end",
  "on_subagent_start",
  "on_subagent_end",
  "error",
  "on_message",
]);

interface Mutable extends Trace {
  /** Open spans, by path and kind. */
  readonly open: Map<string, Span>;
  /** Model calls whose message has not come yet, by message id. */
  readonly answers: Map<string, Span>;
  /** How many model calls of the run itself there were so far. */
  calls: number;
  readonly costOf: Quotas["costOf"];
}

function see(event: StreamEvent, trace: Mutable): void {
  const begun = beginning(event);
  if (begun) begin(event, begun, trace);
  const ended = ending(event);
  if (ended) end(event, ended, trace);
  if (event.event === "on_message") answer(event.data.message, trace);
}

/** Adds to a model call what its message contains. */
function answer(message: Message, { answers }: Mutable): void {
  const span = answers.get(message.id);
  if (!span || message.role !== "assistant") return;
  answers.delete(message.id);
  const { content, tool_calls = [] } = message;
  Object.assign(span, {
    content_length: content.length,
    tool_calls_count: tool_calls.length,
    ...(tool_calls.length > 0 ? { tool_names: tool_calls.map(({ name }) => name) } : {}),
    ...(content === "" ? {} : { output: preview(content) }),
  });
}

function begin(event: StreamEvent, { kind, about }: Beginning, trace: Mutable): void {
  const { spans, open, answers } = trace;
  trace.is_whole &&= spans.length < MAX_SPANS;
  if (!trace.is_whole) return;
  const parent = open.get(placeAround(event));
  const id = String(spans.length + 1);
  const isOwnCall = event.event === "on_chat_model_start" && !event.path;
  const number = isOwnCall ? ++trace.calls : undefined;
  const place = omitUndefined({ parent_id: parent?.id, number });
  const span = { id, ...place, ...about, started_at: timeOf(event) };
  spans.push(span);
  open.set(keyOf(event.path, kind), span);
  if (event.event === "on_chat_model_start") answers.set(event.data.message_id, span);
}

function end(event: StreamEvent, { kind, about }: Ending, { open, costOf }: Mutable): void {
  const key = keyOf(event.path, kind);
  const span = open.get(key);
  if (!span) return;
  open.delete(key);
  const duration_ms = Date.parse(timeOf(event)) - Date.parse(span.started_at);
  const cost = span.name === "llm.call" && about.usage ? costOf(span.model ?? "", about.usage) : undefined;
  Object.assign(span, { duration_ms }, about, omitUndefined({ cost }));
}

/** A subagent's span lies in its tool call's, every other span in that of its run or subagent. */
function placeAround({ path = [], ...event }: StreamEvent): string {
  if (event.event === "on_subagent_start") return keyOf(path, `tool ${event.data.call_id}`);
  const speaker = path.at(-1);
  return speaker === undefined ? keyOf([], "run") : keyOf(path.slice(0, -1), `subagent ${speaker}`);
}

interface Beginning {
  readonly kind: string;
  readonly about: Omit<Span, "id" | "parent_id" | "started_at">;
}

function beginning(event: StreamEvent): Beginning | undefined {
  switch (event.event) {
    case "run_start": {
      const { agent, model } = event.data;
      return { kind: "run", about: { name: "run", agent, model } };
    }
    case "on_chat_model_start":
      return { kind: "llm", about: { name: "llm.call", ...modelCall(event.data) } };
    case "on_tool_start": {
      const { call_id, args } = event.data;
      const about = { tool: event.name, call_id, args: preview(JSON.stringify(args)) };
      return { kind: `tool ${call_id}`, about: { name: "tool.call", ...about } };
    }
    case "on_subagent_start": {
      const { id, agent, call_id } = event.data;
      return { kind: `subagent ${id}`, about: { name: "subagent", agent, call_id } };
    }
    default:
      return undefined;
  }
}

const modelCall = ({
  model,
  message_id,
  message_count,
}: {
  model: string;
  message_id: string;
  message_count?: number | undefined;
}) => ({ model, message_id, ...omitUndefined({ message_count }) });

interface Ending {
  readonly kind: string;
  readonly about: Partial<Omit<Span, "id" | "parent_id" | "started_at" | "name">>;
}

function ending(event: StreamEvent): Ending | undefined {
  switch (event.event) {
    case "on_chat_model_end": {
      const { stop_reason, usage, first_token_ms, error } = event.data;
      return { kind: "llm", about: omitUndefined({ stop_reason, usage, first_token_ms, error }) };
    }
    case "message_discard":
      return {
        kind: "llm",
        about: { error: { message: "The process crashed; the model call was repeated." } },
      };
    case "on_tool_end": {
      const { call_id, output, error, interrupted, duration_ms } = event.data;
      const told = {
        output: output === undefined ? undefined : preview(output),
        error: error === undefined ? undefined : { message: preview(error) },
        status: interrupted ? "interrupted" : undefined,
      };
      return { kind: `tool ${call_id}`, about: { ...omitUndefined(told), duration_ms } };
    }
    case "on_subagent_end": {
      const { id, status, summary, usage } = event.data;
      return {
        kind: `subagent ${id}`,
        about: { status, output: preview(summary), ...omitUndefined({ usage }) },
      };
    }
    case "done": {
      const { status, stop_reason, usage } = event.data;
      return { kind: "run", about: { status, stop_reason, usage } };
    }
    case "error": {
      const { usage, ...error } = event.data;
      return { kind: "run", about: { status: "error", error, ...omitUndefined({ usage }) } };
    }
    default:
      return undefined;
  }
}

const keyOf = (path: readonly string[] = [], kind: string) => JSON.stringify([...path, kind]);
const preview = (text: string) => firstChars(text, PREVIEW_CHARS);

/** The writer stamps every event that a trace reads. */
const timeOf = (event: StreamEvent) => ("ts" in event && event.ts) || new Date(0).toISOString();
