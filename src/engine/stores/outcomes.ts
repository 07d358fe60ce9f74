// How runs end: the outcome that an event describes, and the events for ends that the store itself writes.

import { AppError } from "../../agent/core/errors.ts";
import { loggedWords, WORDS } from "../../agent/core/incomplete-message.ts";
import {
  callsByUsers,
  type Message,
  NO_USAGE,
  type ToolCall,
  type ToolMessage,
  toolMessage,
  type UserMessage,
} from "../../agent/core/message.ts";
import type { RunRecord, RunRequest, ThreadStatus } from "../../agent/core/records.ts";
import { storedEvent } from "../../agent/core/stored-json.ts";
import type { LogEntry, RunKey } from "../../agent/core/stores.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { doneEvent } from "../../protocol/end.ts";
import { type EventName, isTerminal, type StreamEvent } from "../../protocol/event.ts";
import { failedEnd, stillOpen } from "../../protocol/open-spans.ts";
import { SPAN_EVENTS } from "../../protocol/span-reader.ts";

export interface RunOutcome extends Pick<RunRecord, "stop_reason" | "error" | "details" | "usage"> {
  readonly status: Exclude<RunRecord["status"], "pending" | "running">;
}

/** An event to be written to the log, with its stored text. */
export interface PendingEvent {
  readonly event: StreamEvent;
  readonly json: string;
  /** The message that the event adds to the thread, with its stored text. */
  readonly message?: MessageText;
}

export interface MessageText {
  readonly id: string;
  /** The message as JSON. */
  readonly text: string;
}

/** Messages can be large, so each is serialized only once; the result becomes part of its event's text. */
export function pendingEvent(event: StreamEvent): PendingEvent {
  if (event.event !== "on_message" || !isOwn(event)) return { event, json: JSON.stringify(event) };
  const { data, ...rest } = event;
  const text = JSON.stringify(data.message);
  const json = `${JSON.stringify(rest).slice(0, -1)},"data":{"message":${text}}}`;
  return { event, json, message: { id: data.message.id, text } };
}

/** The status of a thread after a run with this outcome, if no other run waits. */
export const THREAD_STATUS = {
  success: "idle",
  cancelled: "idle",
  interrupted: "interrupted",
  error: "error",
} as const satisfies Record<RunOutcome["status"], ThreadStatus>;

/** Returns true for an event of the run itself. Other events belong to threads of its subagents. */
const isOwn = (event: StreamEvent) => !event.path?.length;

/** The events that change more than the log, apart from events that add messages. */
export type ChangeEvent = Extract<StreamEvent, { event: "on_state" | "done" | "error" }>;

const CHANGES: ReadonlySet<EventName> = new Set(["on_state", "done", "error"]);

/** Returns true if the event changes more than the log. */
export const changesThread = ({ event, message }: PendingEvent) =>
  message !== undefined || (CHANGES.has(event.event) && isOwn(event));

/**
 * Returns a copy of the change that the event makes. `changesThread` must be true for the event, and the event must not
 * add a message.
 */
export function changeOf({ json }: PendingEvent): ChangeEvent {
  // `json` is the event's text, and the event's name is in CHANGES.
  return JSON.parse(json) as ChangeEvent;
}

/** Returns the outcome of a run that ends with `event`. */
export function endingOf(event: Extract<ChangeEvent, { event: "done" | "error" }>): RunOutcome {
  if (event.event === "error") {
    const { usage = NO_USAGE, ...error } = event.data;
    return { status: "error", usage, error };
  }
  const { status, stop_reason, usage, details } = event.data;
  return { status, stop_reason, usage, ...omitUndefined({ details }) };
}

/** Returns the outcome of a run with these last events. */
export function endingIn(pending: readonly PendingEvent[]): RunOutcome {
  const last = pending.at(-1);
  if (!last || !isTerminal(last.event.event)) throw new Error("The last event must be the end.");
  return endingOf(changeOf(last) as Extract<ChangeEvent, { event: "done" | "error" }>);
}

/** Returns true if `pending` ends its run. Throws if another event follows the end. */
export function hasEnd(pending: readonly PendingEvent[]): boolean {
  const end = pending.findIndex(({ event }) => isTerminal(event.event) && isOwn(event));
  if (end === -1) return false;
  if (end === pending.length - 1) return true;
  const name = pending[end]?.event.event;
  throw new AppError("internal", `\`${name}\` must be the last event of a run; more came after it.`);
}

export interface Stamp {
  readonly run_id: string;
  readonly thread_id: string;
  readonly ts: string;
}

export function stamp({ run_id, thread_id }: Omit<RunKey, "owner">, now: number): Stamp {
  return { run_id, thread_id, ts: new Date(now).toISOString() };
}

/** Adds unread messages of the inbox to `pending`, before the run's end, so no accepted message is lost. */
export function withUnreadInbox(
  pending: readonly PendingEvent[],
  inbox: readonly UserMessage[],
  stamped: Stamp,
): readonly PendingEvent[] {
  if (inbox.length === 0) return pending;
  const taken = new Set(pending.map(({ event }) => event.event === "on_message" && event.data.message.id));
  const left = inbox
    .filter((message) => !taken.has(message.id))
    .map((message) => pendingEvent({ event: "on_message", ...stamped, data: { message } }));
  return [...pending.slice(0, -1), ...left, ...pending.slice(-1)];
}

/** Returns the complete log of a run that was cancelled while it waited. */
export function cancelledBeforeStart(
  agent: string,
  request: RunRequest | undefined,
  stamped: Stamp,
): StreamEvent[] {
  const usage = NO_USAGE;
  const data = { agent, model: request?.model ?? "", attempt: 1, replaces: request?.replaces };
  return [
    { event: "run_start", ...stamped, data: omitUndefined(data) },
    { ...stamped, ...doneEvent({ status: "cancelled", stop_reason: "cancelled", usage }) },
  ];
}

interface CrashedRun {
  readonly attempts: number;
  /** The log so far. */
  readonly entries: Iterable<LogEntry>;
  /** The messages of its request that are not in the thread yet. They are added, so no accepted message is lost. */
  readonly unread: readonly Message[];
}

/** Returns the last events of a run whose process died in each attempt. Preserves the text of an interrupted answer. */
export function failedAfterCrashes({ attempts, entries, unread }: CrashedRun, stamped: Stamp): StreamEvent[] {
  const message = `The process that executed this run died, or lost its lease on it, ${attempts} times. The run is not retried.`;
  const error = { code: "crashed_too_often", message, details: { attempts } };
  const log = [...entries];
  const words = loggedWords();
  for (const entry of log) words.add(entry);
  const cut = words.partial().message("failed");
  return [
    ...endsOf(log, error, stamped.ts),
    ...[...unread, ...(cut ? [cut] : []), ...answersTo(log, unread, message)].map(
      (each): StreamEvent => ({ event: "on_message", ...stamped, data: { message: each } }),
    ),
    { event: "error", ...stamped, data: error },
  ];
}

/** The events that contain the run's calls and their results. */
const TELLS_OF_CALLS = ["on_tool_start", "on_message"] as const satisfies EventName[];

/** The events that `failedAfterCrashes` needs. */
export const TELLS_OF_CRASHES: readonly EventName[] = [
  ...new Set<EventName>([...SPAN_EVENTS, ...TELLS_OF_CALLS, ...WORDS]),
];

/** Returns a result for each call of the run that has none, so no call stays open. */
function answersTo(entries: readonly LogEntry[], unread: readonly Message[], why: string): ToolMessage[] {
  const open = new Map<string, { readonly name: string; readonly text: string }>();
  const notRun = ({ id, name }: ToolCall) => open.set(id, { name, text: `Not run: ${why}` });
  for (const { event, json } of entries) {
    if (!TELLS_OF_CALLS.some((name) => name === event)) continue;
    // Every entry was written from a StreamEvent.
    const said = storedEvent({ json });
    if (!isOwn(said)) continue;
    if (said.event === "on_tool_start")
      open.set(said.data.call_id, { name: said.name, text: `Outcome unknown: ${why}` });
    if (said.event !== "on_message") continue;
    const { message } = said.data;
    if (message.role === "tool") open.delete(message.tool_call_id);
    if (message.role === "assistant") message.tool_calls?.forEach(notRun);
  }
  callsByUsers(unread).forEach(notRun);
  return [...open].map(([id, { name, text }]) => toolMessage({ id, name }, "", text));
}

const IS_SPAN_EVENT: ReadonlySet<EventName> = new Set(SPAN_EVENTS);

/** Returns the ends of the spans that are still open after `entries`, innermost first. `error` is the reason. */
function endsOf(
  entries: Iterable<LogEntry>,
  error: NonNullable<RunRecord["error"]>,
  ts: string,
): StreamEvent[] {
  return stillOpen(spanEvents(entries))
    .reverse()
    .map((span) => ({ ...failedEnd(span, error), ts }));
}

function* spanEvents(entries: Iterable<LogEntry>): Generator<StreamEvent> {
  for (const { event, json } of entries) {
    // Every entry was written from a StreamEvent.
    if (IS_SPAN_EVENT.has(event)) yield storedEvent({ json });
  }
}
