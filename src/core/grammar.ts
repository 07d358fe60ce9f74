// The grammar of a run's events, as a checker. It is a promise of the loop: every start has exactly one end
// before the run ends, whatever happened; exactly one `done` or `error`, last.

import type { z } from "zod";
import { type ErrorShape, type EventName, isTerminal, type StreamEvent } from "./event.ts";

/** What is wrong with the events of one run, read from its first to its last; empty when they are well formed. */
export function checkGrammar(events: readonly StreamEvent[]): string[] {
  const faults: string[] = [];
  const open = { models: new Map<string, string>(), tools: new Set<string>() };
  const first = events[0];
  if (first?.event !== "run_start") faults.push(`the first event is ${first?.event ?? "missing"}`);

  events.forEach((event, index) => {
    const fault = step(event, open);
    if (fault) faults.push(`event ${index + 1} (${event.event}): ${fault}`);
    if (event.event === "run_start" && index > 0 && !event.path) faults.push("run_start more than once");
    if (isTerminal(event.event) && index < events.length - 1)
      faults.push(`${event.event} is not the last event`);
  });

  const last = events.at(-1);
  if (!last || !isTerminal(last.event)) faults.push("the run has no terminal event");
  for (const id of open.models.values()) faults.push(`message ${id} was never ended`);
  for (const id of open.tools) faults.push(`tool call ${id} was never ended`);
  return faults;
}

interface Open {
  /** The message that is open at a path. */
  readonly models: Map<string, string>;
  readonly tools: Set<string>;
}

function step(event: StreamEvent, open: Open): string | undefined {
  const place = event.path?.join("/") ?? "";
  switch (event.event) {
    case "on_chat_model_start":
      if (open.models.has(place)) return "a message is open already";
      open.models.set(place, event.data.message_id);
      return undefined;
    case "on_chat_model_stream":
      return open.models.has(place) ? undefined : "no message is open";
    case "on_chat_model_end":
    case "message_discard":
      if (open.models.get(place) !== event.data.message_id) return `${event.data.message_id} is not open`;
      open.models.delete(place);
      return undefined;
    case "on_tool_start":
      if (open.tools.has(event.data.call_id)) return `${event.data.call_id} is open already`;
      open.tools.add(event.data.call_id);
      return undefined;
    case "on_tool_progress":
      return open.tools.has(event.data.call_id) ? undefined : `${event.data.call_id} is not open`;
    case "on_tool_end":
      return open.tools.delete(event.data.call_id) ? undefined : `${event.data.call_id} is not open`;
    default:
      return undefined;
  }
}

export type Opening = Extract<StreamEvent, { event: "on_chat_model_start" | "on_tool_start" }>;

/** The events in which a bracket opens or closes: all that `stillOpen` needs to see. */
export const BRACKETS = [
  "on_chat_model_start",
  "on_chat_model_end",
  "message_discard",
  "on_tool_start",
  "on_tool_end",
] as const satisfies readonly EventName[];

/** The starts whose end has not come, in order. */
export function stillOpen(events: Iterable<StreamEvent>): Opening[] {
  const open = new Map<string, Opening>();
  const keyOf = (event: StreamEvent, id: string) => JSON.stringify([event.path ?? [], id]);
  for (const event of events) {
    switch (event.event) {
      case "on_chat_model_start":
        open.set(keyOf(event, event.data.message_id), event);
        break;
      case "on_chat_model_end":
      case "message_discard":
        open.delete(keyOf(event, event.data.message_id));
        break;
      case "on_tool_start":
        open.set(keyOf(event, event.data.call_id), event);
        break;
      case "on_tool_end":
        open.delete(keyOf(event, event.data.call_id));
        break;
    }
  }
  return [...open.values()];
}

/** The end of what `opening` began, when `error` kept it from ending by itself. */
export function failedEnd(opening: Opening, error: z.infer<typeof ErrorShape>): StreamEvent {
  if (opening.event === "on_chat_model_start")
    return { ...opening, event: "on_chat_model_end", data: { message_id: opening.data.message_id, error } };
  const data = { call_id: opening.data.call_id, error: `Outcome unknown: ${error.message}`, duration_ms: 0 };
  return { ...opening, event: "on_tool_end", data };
}
