// The power fails: of the files on disk there is what was written before the last flush that has ended began, and nothing else.

import * as fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { hasCode } from "../../src/core/errors.ts";
import { isProgress, type StreamEvent } from "../../src/core/event.ts";
import type { Shelf } from "../../src/core/items.ts";
import type { Claim, RunKey } from "../../src/core/stores.ts";
import { isWithNext, withNext } from "../../src/core/stream.ts";
import type { AllStores } from "../../src/stores/all-stores.ts";
import { createSqliteStores } from "../../src/stores/sqlite/index.ts";
import { temporaryFolder } from "../support/server.ts";
import { ADA, claimed, delta, done, keyOf, message, newRun, note, readSome } from "./fixture.ts";

/** A disk whose flushes end when the test says so. */
const disk = vi.hoisted(() => ({
  /** By file: its bytes that survive a cut. */
  kept: new Map<string, Uint8Array>(),
  /** Ends the flushes under way, in the order in which they began. */
  underWay: [] as (() => void)[],
  fails: false,
}));

vi.mock("node:fs", async (original) => {
  const real = await original<typeof fs>();
  /** The file itself and its log, as they are now. */
  const bytesOf = (descriptor: number) => {
    const log = real.readlinkSync(`/proc/self/fd/${descriptor}`);
    if (!log.endsWith(".db-wal")) throw new Error(`\`${log}\` was flushed, which is no log.`);
    return [log, log.slice(0, -"-wal".length)].map((path) => [path, real.readFileSync(path)] as const);
  };
  const keep = (files: ReturnType<typeof bytesOf>) => {
    for (const [path, bytes] of files) disk.kept.set(path, bytes);
  };
  const broken = () => Object.assign(new Error("EIO: i/o error, fdatasync"), { code: "EIO" });
  return {
    ...real,
    fdatasyncSync(descriptor: number) {
      if (disk.fails) throw broken();
      keep(bytesOf(descriptor));
    },
    fdatasync(descriptor: number, then: (error: Error | null) => void) {
      const files = bytesOf(descriptor);
      disk.underWay.push(() => {
        if (!disk.fails) keep(files);
        then(disk.fails ? broken() : null);
      });
    },
  };
});

const endOldest = () => disk.underWay.shift()?.();
/** Resolves when `work` does; flushes end meanwhile, each after a millisecond: those of a faster disk are not under way. */
async function withFlushes<T>(work: Promise<T>): Promise<T> {
  let known: (() => void) | undefined;
  const flushing = setInterval(() => {
    if (known && known === disk.underWay[0]) endOldest();
    known = disk.underWay[0];
  }, 1);
  try {
    return await work;
  } finally {
    clearInterval(flushing);
  }
}

afterEach(() => {
  disk.fails = false;
  disk.underWay.length = 0;
});

/** Stores on what a cut leaves of the file in `path`. */
async function afterCut(path: string): Promise<AllStores> {
  const copy = join(await temporaryFolder(), basename(path));
  fs.mkdirSync(dirname(copy), { recursive: true });
  for (const end of ["", "-wal"]) {
    const bytes = disk.kept.get(path + end);
    if (bytes) fs.writeFileSync(copy + end, bytes);
  }
  return createSqliteStores({ path: copy });
}

const THREADS = ["a", "b", "c"];
const NOTES: Shelf = { owner: ADA, of: { agent: "helper" }, kind: "notes" };

type Step =
  | { readonly step: "start" | "end" | "cancel"; readonly thread: string }
  | { readonly step: "say"; readonly thread: string; readonly what: "delta" | "note" | "message" | "joined" }
  | { readonly step: "keep" | "flush" | "turn" };

const thread = fc.constantFrom(...THREADS);
const aStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ step: fc.constantFrom("start", "end", "cancel"), thread }) },
  {
    weight: 3,
    arbitrary: fc.record({
      step: fc.constant("say"),
      thread,
      what: fc.constantFrom("delta", "note", "message", "joined"),
    }),
  },
  { weight: 4, arbitrary: fc.record({ step: fc.constantFrom("keep", "flush", "turn", "turn") }) },
);

/** What was done before a cut, and what someone was told of it: that must be found again. */
class History {
  readonly runs = new Map<string, string>();
  readonly claims = new Map<string, Claim>();
  readonly messages: { readonly thread: string; readonly id: string }[] = [];
  readonly seen = new Map<string, number>();
  readonly settled = new Map<string, string>();
  readonly items: string[] = [];
  readonly appended = new Map<string, string[]>();
  readonly failures: unknown[] = [];
  readonly #stores: AllStores;
  readonly #joined = new Set<string>();
  #count = 0;

  constructor(stores: AllStores) {
    this.#stores = stores;
  }

  take(step: Step): void {
    this.#take(step).catch((error: unknown) => this.failures.push(error));
  }

  /** Runs on two threads, one of them with another run that waits. */
  async begin(): Promise<void> {
    const start = (thread: string) => this.#take({ step: "start", thread });
    await withFlushes(Promise.all([start("a"), start("b"), start("a")]));
  }

  async #take(step: Step): Promise<void> {
    const { runs, items } = this.#stores;
    if (step.step === "keep") {
      const key = `key ${this.#count++}`;
      await items.put(NOTES, { key, value: "x" });
      this.items.push(key);
    } else if (step.step === "start") {
      const run = newRun(step.thread);
      const started = await runs.start(ADA, run, "queue");
      this.runs.set(run.id, step.thread);
      void this.#follow({ owner: ADA, thread_id: step.thread, run_id: run.id }).catch(() => {});
      if (started.outcome === "claimed") this.claims.set(step.thread, started.claim);
    } else if (step.step === "cancel") {
      const waiting = this.runs.entries().find(([id, of]) => of === step.thread && this.#mayWait(id));
      if (!waiting) return;
      const record = await runs.requestStop(ADA, step.thread, waiting[0], "cancel");
      if (record?.status === "cancelled") this.settled.set(waiting[0], "cancelled");
    } else if (step.step === "end") await this.#append(step.thread, done());
    else if (step.step === "say") await this.#append(step.thread, this.#said(step.what));
  }

  #mayWait(id: string): boolean {
    return !this.settled.has(id) && !this.claims.values().some(({ run }) => run.id === id);
  }

  #said(what: Extract<Step, { step: "say" }>["what"]): StreamEvent {
    const text = String(this.#count++);
    if (what === "delta") return delta(text);
    if (what === "note") return note(text);
    return what === "message" ? message(text) : withNext(message(text));
  }

  async #append(thread: string, event: StreamEvent): Promise<void> {
    const claim = this.claims.get(thread);
    if (!claim) return;
    if (event.event === "done") this.claims.delete(thread);
    const { run_id } = claim.lease;
    const json = JSON.stringify(event);
    this.appended.set(run_id, [...(this.appended.get(run_id) ?? []), json]);
    if (isWithNext(event)) this.#joined.add(json);
    await this.#stores.events.append(claim.lease, [event]);
    if (event.event === "done") this.settled.set(run_id, "success");
    if (event.event === "on_message" && !isWithNext(event))
      this.messages.push({ thread, id: event.data.message.id });
  }

  /** Notes the last event that a reader got and that must not be lost: neither progress nor what goes with the next one. */
  async #follow(key: RunKey): Promise<void> {
    for await (const batch of this.#stores.events.read(key, 0, new AbortController().signal))
      for (const { seq, event, json } of batch)
        if (!isProgress(event) && !this.#joined.has(json)) this.seen.set(key.run_id, seq);
  }

  /** Whether all that was told is there. */
  async expectKept(stores: AllStores): Promise<void> {
    const { runs, threads, items, events } = stores;
    for (const [id, thread] of this.runs) {
      const record = await runs.get(ADA, thread, id);
      expect(record).toBeDefined();
      const status = this.settled.get(id);
      if (status) expect(record?.status).toBe(status);
      const key = { owner: ADA, thread_id: thread, run_id: id };
      const { last } = await events.bounds(key);
      expect(last).toBeGreaterThanOrEqual(this.seen.get(id) ?? 0);
      if (last === 0 || status === "cancelled") continue;
      const log = (await readSome(stores, key, last)).map(({ json }) => json);
      expect(log).toEqual((this.appended.get(id) ?? []).slice(0, last));
    }
    for (const { thread, id } of this.messages)
      expect((await threads.messages(ADA, thread)).map((each) => each.id)).toContain(id);
    const kept = (await items.list(NOTES)).map(({ key }) => key);
    expect(kept).toEqual(expect.arrayContaining(this.items));
  }
}

test("nothing that someone was told is lost when the power fails, whatever was under way", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(aStep, { minLength: 10, maxLength: 80 }), async (steps) => {
      disk.kept.clear();
      const path = join(await temporaryFolder(), "skein.db");
      const stores = createSqliteStores({ path });
      const history = new History(stores);
      await history.begin();
      for (const step of steps) {
        if (step.step === "flush") endOldest();
        else if (step.step === "turn") await nextTurn();
        else history.take(step);
      }
      expect(history.failures).toEqual([]);
      const again = await afterCut(path);
      try {
        await history.expectKept(again);
      } finally {
        await withFlushes(Promise.all([again.close(), stores.close()]));
      }
    }),
    { numRuns: 60 },
  );
});

async function open(): Promise<{ readonly stores: AllStores; readonly claim: Claim }> {
  const stores = createSqliteStores({ path: join(await temporaryFolder(), "skein.db") });
  onTestFinished(() => withFlushes(stores.close()));
  return { stores, claim: await withFlushes(claimed(stores, "t")) };
}

test("a reader who is far behind gets no event before it is on disk either", async () => {
  const { stores, claim } = await open();
  await stores.events.append(
    claim.lease,
    Array.from({ length: 10 }, () => note("漢".repeat(20_000))),
  );
  const appended = stores.events.append(claim.lease, [message("x")]);
  await expect.poll(() => disk.underWay.length).toBe(1);
  expect(await readSome(stores, keyOf(claim), 10)).toHaveLength(10);
  await withFlushes(appended);
  expect(await readSome(stores, keyOf(claim), 11)).toHaveLength(11);
});

test("a disk that refuses a flush once gets no more to write: those who wait hear of it, readers see nothing of it", async () => {
  const { stores, claim } = await open();
  const seen: string[] = [];
  const reading = (async () => {
    for await (const batch of stores.events.read(keyOf(claim), 0, new AbortController().signal))
      seen.push(...batch.map(({ event }) => event));
  })();
  disk.fails = true;
  const asked: Promise<unknown>[] = [
    stores.events.append(claim.lease, [message("x")]),
    stores.runs.start(ADA, newRun("u"), "reject"),
  ];
  const refused = asked.map((each) =>
    withFlushes(each).then(
      () => "done",
      (error: unknown) => hasCode(error, "unavailable"),
    ),
  );
  expect(await Promise.all(refused)).toEqual([true, true]);
  disk.fails = false;
  await expect(withFlushes(stores.runs.start(ADA, newRun("v"), "reject"))).rejects.toMatchObject({
    code: "unavailable",
  });
  await stores.close();
  await expect(reading).rejects.toMatchObject({ code: "unavailable" });
  expect(seen).toEqual([]);
});
