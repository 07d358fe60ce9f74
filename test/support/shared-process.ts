// What a test file must leave as it found it where files share a process: what it opened is closed, and the clock is real.

import { afterAll, beforeAll, expect, vi } from "vitest";

/** Servers, processes, and clients that connect, by kind; no sockets and timers: those of a pool may stay for a while. */
function opened(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo())
    if (/Server|Process|Connect/.test(kind)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

let before = new Map<string, number>();

beforeAll(() => {
  before = opened();
  vi.useFakeTimers = () => {
    throw new Error("The process is shared: list the file in `alone` of vitest.config.ts.");
  };
});

afterAll(async () => {
  const left = () => [...opened()].filter(([kind, count]) => count > (before.get(kind) ?? 0));
  await vi.waitFor(() => expect(left(), "what the file opened and did not close").toEqual([]), {
    timeout: 90_000,
  });
});
