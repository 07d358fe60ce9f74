// The order in which a thread's runs were begun, which is that of their messages in it.

import type { RunOnRecord, ThreadOnRecord } from "./records.ts";

/** Those that have added a message. */
export function begunIn({ messages, runs }: ThreadOnRecord): RunOnRecord[] {
  const places = new Map(messages.map(({ id }, index) => [id, index]));
  const placeOf = ({ events }: RunOnRecord) => {
    const first = events.find((event) => event.event === "on_message");
    return (first && places.get(first.data.message.id)) ?? -1;
  };
  return runs.filter((run) => placeOf(run) >= 0).sort((a, b) => placeOf(a) - placeOf(b));
}
