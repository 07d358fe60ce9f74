// Readers of one run in a store that several processes share, when its answers come late.

import { setImmediate as turn } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import type { LogEntry } from "../../../src/agent/core/stores.ts";
import { createReplays, type EventPage, type Pages } from "../../../src/engine/stores/shared/event-pages.ts";
import { sharedEvents } from "../../../src/engine/stores/shared/events.ts";
import { LiveTails, type RunListener } from "../../../src/engine/stores/shared/live-tails.ts";
import { ADA, note, seqsOf, upTo } from "./fixture.ts";

const run = { owner: ADA, thread_id: "t", run_id: "r" };

/** A run's log of so many entries, as a look at the store finds it. */
function pageOf(length: number): EventPage {
  const { event } = note("x");
  const entries = upTo(length).map((seq): LogEntry => ({ seq, epoch: 1, event, json: "{}" }));
  const held = { first: 1, last: length, epochOf: () => 1 };
  return { last: length, epoch: 1, state: "live", held, entries };
}

/** The event log of such a store. `joined` resolves when the first reader listens. */
function shared(pages: Pick<Pages, "look" | "read">) {
  const { promise: joined, resolve } = Promise.withResolvers<RunListener>();
  const feeds = new LiveTails(pages, { join: async (_, listener) => resolve(listener), leave() {} });
  onTestFinished(() => feeds.close());
  const replays = createReplays(pages, { isInRun: false, ms: 60_000 });
  const writer = { append: () => Promise.reject(new Error("This test writes nothing.")) };
  return { events: sharedEvents({ pages, replays, feeds, writer }), joined };
}

test("a reader gets an entry of which no message came", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  let written = 0;
  const look = async () => pageOf(written);
  const { events, joined } = shared({ look, read: look });
  const following = events.read(run, 0, new AbortController().signal).next();
  await joined;
  await turn();
  written = 1;
  vi.advanceTimersByTime(5_000);
  expect(seqsOf((await following).value ?? [])).toEqual([1]);
});

test("a reader gets an entry that was written after another reader asked for the same page", async () => {
  let written = 0;
  const late: (() => void)[] = [];
  let isSlow = false;
  const pages = {
    look: async () => pageOf(written),
    read: async () => {
      const page = pageOf(written);
      if (isSlow) await new Promise<void>((resolve) => late.push(resolve));
      return page;
    },
  };
  const { events, joined } = shared(pages);
  const { signal } = new AbortController();

  const following = events.read(run, 0, signal).next();
  const { onNews } = await joined;
  await turn();
  isSlow = true;
  const other = events.read(run, 0, signal).next();
  await expect.poll(() => late.length).toBe(1);
  isSlow = false;
  written = 1;
  onNews({ last: 1, epoch: 1, ends: false });
  await turn();
  late.forEach((answer) => void answer());
  expect(seqsOf((await following).value ?? [])).toEqual([1]);
  expect(seqsOf((await other).value ?? [])).toEqual([1]);
});

test("readers of one page share one read, and later readers read again", async () => {
  const asked: [number, (page: EventPage) => void][] = [];
  const read = (_: unknown, { seq }: { seq: number }) =>
    new Promise<EventPage>((resolve) => asked.push([seq, resolve]));
  const replays = createReplays({ read }, { isInRun: false, ms: 60_000 });
  const askFor = (seq: number) => replays.read(run, { seq, epoch: 1 });
  for (const round of [1, 2]) {
    const same = [askFor(0), askFor(0)];
    const next = askFor(3);
    await expect.poll(() => asked.length).toBe(2);
    expect(asked.map(([seq]) => seq)).toEqual([0, 3]);
    for (const [seq, answer] of asked.splice(0)) answer(pageOf(seq + round));
    expect((await Promise.all([...same, next])).map((page) => page?.last)).toEqual([round, round, 3 + round]);
  }
});
