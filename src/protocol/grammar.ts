// Checks the grammar of a run's events. The loop guarantees exactly one end for every start before the run ends, and
// exactly one `done` or `error`, which comes last. The checker parses events itself, because it also checks what the
// span reader relies on.

import { isTerminal, type StreamEvent } from "./event.ts";

/** Returns the faults in the events of one complete run. The result is empty if they are well formed. */
export function checkGrammar(events: readonly StreamEvent[]): string[] {
  const faults: string[] = [];
  const open: Open = { models: new Map(), tools: new Map(), subagents: new Map() };
  const first = events[0];
  if (first?.event !== "run_start") faults.push(`the first event is ${first?.event ?? "missing"}`);

  events.forEach((event, index) => {
    const fault = step(event, open);
    if (fault) faults.push(`event ${index + 1} (${event.event}): ${fault}`);
    if (event.event === "run_start" && index > 0) faults.push("run_start more than once");
    if (isTerminal(event.event) && index < events.length - 1)
      faults.push(`${event.event} is not the last event`);
  });

  const last = events.at(-1);
  if (!last || !isTerminal(last.event)) faults.push("the run has no terminal event");
  for (const id of open.models.values()) faults.push(`message ${id} was never ended`);
  for (const id of open.tools.values()) faults.push(`tool call ${id} was never ended`);
  for (const id of open.subagents.values()) faults.push(`subagent ${id} was never ended`);
  return faults;
}

/** The open brackets by path, and by id if several of a kind can be open. */
interface Open {
  readonly models: Map<string, string>;
  readonly tools: Map<string, string>;
  readonly subagents: Map<string, string>;
}

const placeOf = (...ids: readonly string[]) => JSON.stringify(ids);

function step(event: StreamEvent, open: Open): string | undefined {
  const path = event.path ?? [];
  const place = placeOf(...path);
  if (path.length > 0 && !open.subagents.has(place)) return `no subagent is open at ${place}`;
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
      return opened(open.tools, path, event.data.call_id);
    case "on_tool_progress":
      return open.tools.has(placeOf(...path, event.data.call_id))
        ? undefined
        : `${event.data.call_id} is not open`;
    case "on_tool_end":
      return ended(open.tools, path, event.data.call_id);
    case "on_subagent_start":
      return opened(open.subagents, path, event.data.id);
    case "on_subagent_end":
      return within(open, [...path, event.data.id]) ?? ended(open.subagents, path, event.data.id);
    default:
      return undefined;
  }
}

function opened(open: Map<string, string>, path: readonly string[], id: string): string | undefined {
  const key = placeOf(...path, id);
  if (open.has(key)) return `${id} is open already`;
  open.set(key, id);
  return undefined;
}

function ended(open: Map<string, string>, path: readonly string[], id: string): string | undefined {
  return open.delete(placeOf(...path, id)) ? undefined : `${id} is not open`;
}

/** Returns a fault if a subagent ends with open brackets. */
function within({ models, tools, subagents }: Open, path: readonly string[]): string | undefined {
  const place = placeOf(...path);
  const below = `${place.slice(0, -1)},`;
  const left = models.has(place) || [models, tools, subagents].some((open) => hasBelow(open, below));
  return left ? `something is open below ${place}` : undefined;
}

const hasBelow = (open: Map<string, string>, below: string) =>
  [...open.keys()].some((key) => key.startsWith(below));
