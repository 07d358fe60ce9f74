// The power fails: of the files on disk there is what was written before the last flush that has ended began, and nothing else.

import * as fs from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { hasCode } from "../../../src/agent/core/errors.ts";
import type { Shelf } from "../../../src/agent/core/items.ts";
import type { Claim, LogEntry, RunKey } from "../../../src/agent/core/stores.ts";
import { withNext } from "../../../src/agent/core/stream.ts";
import type { AllStores } from "../../../src/engine/stores/all-stores.ts";
import { Disk } from "../../../src/engine/stores/sqlite/disk.ts";
import { createSqliteStores } from "../../../src/engine/stores/sqlite/index.ts";
import { isProgress, type StreamEvent } from "../../../src/protocol/event.ts";
import { isNightly } from "../../support/seed.ts";
import { temporaryFolder } from "../../support/server.ts";
import { ADA, claimed, delta, done, keyOf, message, newRun, note, readSome } from "./fixture.ts";
import { descriptorsOf } from "./sqlite-file.ts";

/** A disk whose flushes end when the test says so. */
const disk = vi.hoisted(() => ({
  /** By file: its bytes that survive a cut. */
  kept: new Map<string, Uint8Array>(),
  /** Folders whose names survive a cut. */
  named: new Set<string>(),
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
    fsyncSync(descriptor: number) {
      disk.named.add(real.readlinkSync(`/proc/self/fd/${descriptor}`));
    },
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
});

type Files = ReadonlyMap<string, Uint8Array>;

const ENDS = ["", "-wal"];
/** What there is of the file in `path` after the power failed, and after the process was killed. */
const afterCut = (path: string): Files =>
  pick(path, (file) => (disk.named.has(dirname(file)) ? disk.kept.get(file) : undefined));
const afterKill = (path: string): Files => pick(path, (file) => fs.readFileSync(file));

function pick(path: string, bytesOf: (file: string) => Uint8Array | undefined): Files {
  return new Map(ENDS.flatMap((end) => bytesOf(path + end) ?? []).map((bytes, n) => [ENDS[n] ?? "", bytes]));
}

async function copyOf(files: Files): Promise<string> {
  const path = join(await temporaryFolder(), "skein.db");
  for (const [end, bytes] of files) fs.writeFileSync(path + end, bytes);
  return path;
}

const THREADS = ["a", "b", "c"];
const NOTES: Shelf = { owner: ADA, of: { agent: "helper" }, kind: "notes" };

type Step =
  | { readonly step: "start" | "end" | "cancel"; readonly thread: string }
  | {
      readonly step: "say";
      readonly thread: string;
      readonly what: "delta" | "note" | "message" | "with next";
    }
  | { readonly step: "keep" | "flush" | "turn" };

const thread = fc.constantFrom(...THREADS);
const aStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ step: fc.constantFrom("start", "end", "cancel"), thread }) },
  {
    weight: 3,
    arbitrary: fc.record({
      step: fc.constant("say"),
      thread,
      what: fc.constantFrom("delta", "note", "message", "with next"),
    }),
  },
  { weight: 4, arbitrary: fc.record({ step: fc.constantFrom("keep", "flush", "turn", "turn") }) },
);

/** The steps before a cut, and every answer and event that someone got of them: these must be found again. */
class History {
  readonly runs = new Map<string, string>();
  readonly claims = new Map<string, Claim>();
  readonly messages: { readonly thread: string; readonly id: string }[] = [];
  /** By run: the last event that a reader got, and the last that does not only show progress. */
  readonly seen = new Map<string, number>();
  readonly seenToCount = new Map<string, number>();
  readonly settled = new Map<string, string>();
  readonly items: string[] = [];
  readonly appended = new Map<string, string[]>();
  readonly failures: unknown[] = [];
  readonly #stores: AllStores;
  readonly #shown = new Map<string, string[]>();
  readonly #end = new AbortController();
  #isOver = false;
  #count = 0;

  constructor(stores: AllStores) {
    this.#stores = stores;
  }

  take(step: Step): void {
    this.#take(step).catch((error: unknown) => this.#note(() => this.failures.push(error)));
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
      this.#note(() => this.items.push(key));
    } else if (step.step === "start") {
      const run = newRun(step.thread);
      const started = await runs.start(ADA, run, "queue");
      this.#note(() => this.runs.set(run.id, step.thread));
      void this.#follow({ owner: ADA, thread_id: step.thread, run_id: run.id }).catch(() => {});
      if (started.outcome === "claimed") this.claims.set(step.thread, started.claim);
    } else if (step.step === "cancel") {
      const waiting = this.runs.entries().find(([id, of]) => of === step.thread && this.#mayWait(id));
      if (!waiting) return;
      const record = await runs.requestStop(ADA, step.thread, waiting[0], "cancel");
      if (record?.status === "cancelled") this.#note(() => this.settled.set(waiting[0], "cancelled"));
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
    await this.#stores.events.append(claim.lease, [event]);
    if (event.event === "done") this.#note(() => this.settled.set(run_id, "success"));
    if (event.event !== "on_message") return;
    const { id } = event.data.message;
    this.#note(() => this.messages.push({ thread, id }));
  }

  #note(told: () => void): void {
    if (!this.#isOver) told();
  }

  async #follow(key: RunKey): Promise<void> {
    for await (const batch of this.#stores.events.read(key, 0, this.#end.signal))
      for (const { seq, event, json } of batch) {
        this.seen.set(key.run_id, seq);
        this.#shown.set(key.run_id, [...(this.#shown.get(key.run_id) ?? []), json]);
        if (!isProgress(event)) this.seenToCount.set(key.run_id, seq);
      }
  }

  /** From now on no one gets anything. */
  end(): void {
    this.#end.abort();
    this.#isOver = true;
  }

  /** Expects everything that someone got. */
  async expectKept(stores: AllStores, seen: ReadonlyMap<string, number>): Promise<void> {
    const { runs, threads, items, events } = stores;
    for (const [id, thread] of this.runs) {
      const record = await runs.get(ADA, thread, id);
      expect(record).toBeDefined();
      const status = this.settled.get(id);
      if (status) expect(record?.status).toBe(status);
      const key = { owner: ADA, thread_id: thread, run_id: id };
      const { last } = await events.bounds(key);
      expect(last).toBeGreaterThanOrEqual(seen.get(id) ?? 0);
      const shown = this.#shown.get(id) ?? [];
      if (record?.status !== "cancelled")
        expect(shown).toEqual((this.appended.get(id) ?? []).slice(0, shown.length));
      if (last === 0 || record?.status === "cancelled") continue;
      const log = (await readSome(stores, key, last)).map(({ json }) => json);
      expect(log).toEqual((this.appended.get(id) ?? []).slice(0, last));
    }
    for (const { thread, id } of this.messages)
      expect((await threads.messages(ADA, thread)).map((each) => each.id)).toContain(id);
    const kept = (await items.list(NOTES)).map(({ key }) => key);
    expect(kept).toEqual(expect.arrayContaining(this.items));
  }
}

/** Does the steps and stops in the middle of what they have begun: with which of the files, and what had been seen. */
async function interrupted(
  steps: readonly Step[],
  filesOf: (path: string) => Files,
  seenOf: (history: History) => ReadonlyMap<string, number>,
): Promise<void> {
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
  const files = filesOf(path);
  history.end();
  expect(history.failures).toEqual([]);
  const again = createSqliteStores({ path: await copyOf(files) });
  try {
    await history.expectKept(again, seenOf(history));
  } finally {
    await withFlushes(Promise.all([again.close(), stores.close()]));
  }
}

const numRuns = isNightly ? 120 : 20;
const someSteps = fc.array(aStep, { minLength: 10, maxLength: 80 });

test("no confirmed data is lost if the power fails at any moment", () =>
  fc.assert(
    fc.asyncProperty(someSteps, (steps) => interrupted(steps, afterCut, ({ seenToCount }) => seenToCount)),
    { numRuns },
  ));

test("no event that a reader received is lost if the process is killed at any moment", () =>
  fc.assert(
    fc.asyncProperty(someSteps, (steps) => interrupted(steps, afterKill, ({ seen }) => seen)),
    { numRuns },
  ));

async function open(): Promise<{ readonly path: string; readonly stores: AllStores; readonly claim: Claim }> {
  const path = join(await temporaryFolder(), "skein.db");
  const stores = createSqliteStores({ path });
  onTestFinished(() => withFlushes(stores.close()));
  return { path, stores, claim: await withFlushes(claimed(stores, "t")) };
}

test("even a reader that is far behind gets no event before it is on disk", async () => {
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

test("a disk that refuses a flush once gets no more writes: waiting calls fail, and readers see nothing of it", async () => {
  const { stores, claim } = await open();
  const seen: string[] = [];
  const reading = (async () => {
    for await (const batch of stores.events.read(keyOf(claim), 0, new AbortController().signal))
      seen.push(...batch.map(({ event }) => event));
  })();
  const refused = (work: Promise<unknown>) =>
    work.then(
      () => "done",
      (error: unknown) => hasCode(error, "unavailable"),
    );
  const first = refused(stores.events.append(claim.lease, [message("x")]));
  await expect.poll(() => disk.underWay.length).toBe(1);
  const second = refused(stores.runs.start(ADA, newRun("u"), "reject"));
  await nextTurn();
  disk.fails = true;
  endOldest();
  disk.fails = false;
  const third = refused(stores.runs.get(ADA, "u", "run"));
  expect(await withFlushes(Promise.all([first, second, third]))).toEqual([true, true, true]);
  await expect(withFlushes(stores.runs.start(ADA, newRun("v"), "reject"))).rejects.toMatchObject({
    code: "unavailable",
  });
  // What `/ready` asks.
  await expect(stores.ping()).rejects.toMatchObject({
    message: expect.stringMatching(/EIO.*until the server restarts/),
  });
  await stores.close();
  await expect(reading).rejects.toMatchObject({ code: "unavailable" });
  expect(seen).toEqual([]);
});

test("the file has few copies of the output of runs of which one always has some that is new", async () => {
  const { stores, claim, path } = await open();
  const other = await withFlushes(claimed(stores, "other"));
  const say = ({ lease }: Claim, n: number) => stores.events.append(lease, [delta(String(n))]);
  // So the two never move to their logs at once.
  for (let n = 0; n < 30; n++) await say(other, n);
  for (let n = 0; n < 400; n++) await say(n % 2 === 0 ? claim : other, n);
  const file = new DatabaseSync(await copyOf(afterKill(path)));
  expect(file.prepare("SELECT count(*) AS n FROM tail").get()?.n).toBeLessThan(200);
  file.close();
});

test("a slow run's output is found after a kill among later output of fast ones, and the file has few copies of it", async () => {
  const { stores, claim, path } = await open();
  const fast = await withFlushes(claimed(stores, "fast"));
  const say = (to: Claim, text: string) => stores.events.append(to.lease, [delta(text)]);
  await say(claim, "slow");
  for (let n = 0; n < 300; n++) await say(fast, String(n));
  await say(claim, "and steady");
  for (let n = 0; n < 110; n++) await say(fast, String(n));
  const files = afterKill(path);
  const epoch = claim.lease.epoch;
  expect(await stores.events.seen(keyOf(claim), { seq: 2, epoch })).toBe(2);
  expect(await stores.events.seen(keyOf(fast), { seq: 409, epoch })).toBe(409);
  const copy = await copyOf(files);
  const file = new DatabaseSync(copy);
  expect(file.prepare("SELECT count(*) AS n FROM tail").get()?.n).toBeLessThan(200);
  file.close();
  const again = createSqliteStores({ path: copy });
  const texts = (entries: readonly LogEntry[]) => entries.map(({ json }) => JSON.parse(json).data.delta);
  expect(texts(await readSome(again, keyOf(claim), 2))).toEqual(["slow", "and steady"]);
  const said = [...Array(300).keys(), ...Array(110).keys()].map(String);
  expect(texts(await readSome(again, keyOf(fast), 410))).toEqual(said);
  await withFlushes(again.close());
});

test("data that was read after a kill survives a power failure, because it is on disk before anyone can read it", async () => {
  const { stores, claim, path } = await open();
  void stores.events.append(claim.lease, [message("x")]);
  await expect.poll(() => disk.underWay.length).toBe(1);
  const copy = await copyOf(afterKill(path));
  const again = createSqliteStores({ path: copy });
  const read = async (from: AllStores) => (await from.threads.messages(ADA, "t")).length;
  const found = await read(again);
  expect(found).toBeGreaterThan(0);
  const last = createSqliteStores({ path: await copyOf(afterCut(copy)) });
  expect(await read(last)).toBe(found);
  await withFlushes(Promise.all([last.close(), again.close()]));
});

test("output between two messages that are being written comes after both of them", async () => {
  const { stores, claim } = await open();
  const seen: string[] = [];
  const all = new AbortController();
  const reading = (async () => {
    for await (const batch of stores.events.read(keyOf(claim), 0, all.signal))
      seen.push(...batch.map(({ seq, event }) => `${seq} ${event}`));
  })();
  reading.catch(() => {});
  const first = stores.events.append(claim.lease, [message("x")]);
  await expect.poll(() => disk.underWay.length).toBe(1);
  const second = stores.events.append(claim.lease, [message("y")]);
  await nextTurn();
  endOldest();
  await first;
  const said = stores.events.append(claim.lease, [delta("z")]);
  for (let turn = 0; turn < 5; turn++) await nextTurn();
  expect(seen).toEqual(["1 on_message"]);
  await withFlushes(Promise.all([second, said]));
  await expect.poll(() => seen).toEqual(["1 on_message", "2 on_message", "3 on_chat_model_stream"]);
  all.abort();
  await reading.catch(() => {});
});

test("a run can be stopped while it writes an important event during each flush", async () => {
  const { stores, claim } = await open();
  let isOver = false;
  const talking = (async () => {
    for (; !isOver; await nextTurn()) void stores.events.append(claim.lease, [message("x")]).catch(() => {});
  })();
  const stopped = await withFlushes(stores.runs.requestStop(ADA, "t", claim.run.id, "cancel"));
  isOver = true;
  await talking;
  expect(stopped?.status).toBe("running");
  expect(await withFlushes(stores.runs.renew(claim.lease))).toEqual({ stop: "cancel" });
});

test("reads and refusals because of a start are returned once the start is on disk", async () => {
  const { stores } = await open();
  const run = newRun("u", { idempotency_key: "once" });
  const answers: string[] = [];
  const answered = (name: string) => () => void answers.push(name);
  const all = [
    stores.runs.start(ADA, run, "reject").then(answered("start")),
    stores.runs.get(ADA, "u", run.id).then(answered("get")),
    stores.runs.start(ADA, newRun("u"), "reject").catch(answered("refusal")),
    stores.runs.start(ADA, run, "reject").then(answered("known")),
  ];
  for (let turn = 0; turn < 20; turn++) await nextTurn();
  expect(answers).toEqual([]);
  await withFlushes(Promise.all(all));
  expect(answers.toSorted()).toEqual(["get", "known", "refusal", "start"]);
});

test("a delta in between leads to no early response", async () => {
  const { stores, claim } = await open();
  const said = stores.events.append(claim.lease, [message("x")]);
  await expect.poll(() => disk.underWay.length).toBe(1);
  const next = newRun("t");
  const answers: string[] = [];
  const queued = stores.runs.start(ADA, next, "queue").then(() => answers.push("queued"));
  const shown = stores.events.append(claim.lease, [delta("y")]);
  await nextTurn();
  const read = stores.runs.get(ADA, "t", next.id).then(() => answers.push("read"));
  endOldest();
  await Promise.all([said, shown]);
  for (let turn = 0; turn < 5; turn++) await nextTurn();
  expect(answers).toEqual([]);
  await withFlushes(Promise.all([queued, read]));
});

test("a file that is closed during a flush stays open until the flush has ended, and no longer", async () => {
  const log = join(await temporaryFolder(), "skein.db-wal");
  for (const path of [log, log.slice(0, -"-wal".length)]) fs.writeFileSync(path, "");
  const closing = new Disk(log, () => false);
  const flushed = closing.flushed();
  await expect.poll(() => disk.underWay.length).toBe(1);
  closing.close();
  expect(descriptorsOf(log)).toBe(1);
  endOldest();
  await flushed;
  expect(descriptorsOf(log)).toBe(0);
});

test("closing confirms committed writes", async () => {
  const { stores } = await open();
  const started = [newRun("u"), newRun("v")].map((run) => stores.runs.start(ADA, run, "reject"));
  await nextTurn();
  await withFlushes(stores.close());
  expect((await Promise.all(started)).map(({ outcome }) => outcome)).toEqual(["claimed", "claimed"]);
});

test("nothing is left next to the logs of runs that end at once", async () => {
  const { path, stores, claim } = await open();
  const other = await withFlushes(claimed(stores, "other"));
  for (const { lease } of [claim, other]) await stores.events.append(lease, [delta("secret")]);
  await withFlushes(Promise.all([claim, other].map(({ lease }) => stores.events.append(lease, [done()]))));
  const file = new DatabaseSync(await copyOf(afterKill(path)));
  expect(file.prepare("SELECT count(*) AS n FROM tail").get()).toEqual({ n: 0 });
  file.close();
});
