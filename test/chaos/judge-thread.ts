// One thread: it is free, and holds what its runs have said they added, once and in order; each call has its result.

import type { Journal } from "./journal.ts";
import type { ThreadOnRecord } from "./records.ts";

export function judgeThread({ thread, messages, runs }: ThreadOnRecord, journal: Journal): void {
  const fault = (text: string) => journal.fault(`${thread.id}: ${text}`);
  if (thread.status === "busy") fault("it stays busy");
  const ids = messages.map(({ id }) => id);
  if (thread.message_count !== ids.length)
    fault(`it has ${ids.length} messages, and counts ${thread.message_count}`);
  if (new Set(ids).size !== ids.length) fault(`it holds a message twice: ${ids.join()}`);

  const place = new Map(ids.map((id, index) => [id, index]));
  const added = runs.map(({ events }) =>
    events.flatMap((event) => (event.event === "on_message" ? [event.data.message] : [])),
  );
  for (const run of added) {
    const places = run.map(({ id }) => place.get(id) ?? -1);
    if (places.includes(-1)) fault(`it lacks ${run.filter(({ id }) => !place.has(id)).map(({ id }) => id)}`);
    const first = places[0] ?? 0;
    if (places.some((each, index) => each !== first + index))
      fault(`a run's messages stand at ${places.join()}`);
  }
  const known = new Set(added.flat().map(({ id }) => id));
  for (const { id, role } of messages)
    if (!known.has(id)) fault(`${id} (${role}) was added by none of its runs`);
  judgeCalls(messages, fault);
}

/** Between a call and the next word of the model or of a user stands its one result. */
function judgeCalls(messages: ThreadOnRecord["messages"], fault: (text: string) => void): void {
  const open = new Set<string>();
  for (const message of messages) {
    if (message.role === "tool") {
      if (!open.delete(message.tool_call_id))
        fault(`${message.id} is a result of ${message.tool_call_id}, which waits for none`);
      continue;
    }
    if (open.size > 0)
      fault(`${[...open].join()} had no result when ${message.id} (${message.role}) was said`);
    if (message.role === "assistant") for (const { id } of message.tool_calls ?? []) open.add(id);
  }
  if (open.size > 0) fault(`${[...open].join()} never got a result`);
}
