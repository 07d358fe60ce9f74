import { expect, test } from "vitest";
import type { StreamEvent } from "../../src/client/client.ts";
import { logEvent, MOST_EVENTS, newEventLog } from "../../src/page/event-log.ts";

test("the events of a run are kept up to a limit, and all of them are counted by name", () => {
  const log = newEventLog();
  const names = ["run_start", ...Array.from({ length: MOST_EVENTS }, () => "on_text_delta")];
  for (const [at, event] of names.entries())
    logEvent(log, { id: String(at), event: { event } as StreamEvent });
  expect(log.seen.map(({ id }) => id)).toEqual(Array.from({ length: MOST_EVENTS }, (_, at) => String(at)));
  expect([log.total, ...log.counts]).toEqual([
    MOST_EVENTS + 1,
    ["run_start", 1],
    ["on_text_delta", MOST_EVENTS],
  ]);
});
