// The log of the database is copied into it by a thread, while the event loop commits.

import { randomUUID } from "node:crypto";
import { closeSync, existsSync, openSync, readFileSync, readSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setImmediate as turn } from "node:timers/promises";
import type * as threads from "node:worker_threads";
import { afterEach, expect, test, vi } from "vitest";
import type { AllStores } from "../../../src/engine/stores/all-stores.ts";
import { createSqliteStores } from "../../../src/engine/stores/sqlite/index.ts";
import { threadsCanShare } from "../../../src/engine/stores/sqlite/opening.ts";
import type { Logger } from "../../../src/lib/logger.ts";
import { isNightly } from "../../support/seed.ts";
import { temporaryFolder } from "../../support/server.ts";
import { ADA, claimed, message, note } from "./fixture.ts";
import { descriptorsOf, MIB, temporaryDatabase } from "./sqlite-file.ts";

/** What threads run in place of their code, and the flags that the last one shares with the event loop. */
const other = vi.hoisted((): { code: string | undefined; flags: Int32Array } => ({
  code: undefined,
  flags: new Int32Array(2),
}));

vi.mock("node:worker_threads", async (original) => {
  const real = await original<typeof threads>();
  class Worker extends real.Worker {
    constructor(code: string, options: threads.WorkerOptions) {
      super(other.code ?? code, options);
      other.flags = options.workerData.state;
    }
  }
  return { ...real, Worker };
});

afterEach(() => {
  vi.useRealTimers();
  other.code = undefined;
});

const { path } = temporaryDatabase();
const THREADS = 8;
const log = () => statSync(`${path()}-wal`).size;
const file = () => statSync(path()).size;

interface Written {
  readonly thread: string;
  readonly id: string;
}

/** Says as much on several new threads at once. Returns what was answered; `look` is called with it after each answer. */
async function write(
  stores: AllStores,
  bytes: number,
  look: (written: readonly Written[]) => void = () => {},
): Promise<readonly Written[]> {
  const written: Written[] = [];
  let said = 0;
  const talk = async (n: number) => {
    const thread = randomUUID();
    const { lease } = await claimed(stores, thread);
    for (let count = n; said < bytes; count++) {
      const event = message("x".repeat(5_000 + ((count * 7_919) % 20_000)));
      if (event.event !== "on_message") throw new Error("It is no message.");
      said += JSON.stringify(event).length;
      await stores.events.append(lease, [event]);
      written.push({ thread, id: event.data.message.id });
      look(written);
    }
  };
  await Promise.all(Array.from({ length: THREADS }, (_, n) => talk(n)));
  return written;
}

async function expectAll(stores: AllStores, written: readonly Written[]): Promise<void> {
  for (const thread of new Set(written.map((each) => each.thread))) {
    const ids = new Set((await stores.threads.messages(ADA, thread)).map(({ id }) => id));
    expect(written.filter((each) => each.thread === thread && !ids.has(each.id))).toEqual([]);
  }
}

test("the log is limited while runs write without a pause, and closing leaves none", async () => {
  const stores = createSqliteStores({ path: path() });
  let longest = 0;
  const written = await write(stores, 48 * MIB, () => {
    longest = Math.max(longest, log());
  });
  // A page of a message is in the log more than once.
  expect(longest).toBeGreaterThan(8 * MIB);
  expect(longest).toBeLessThan(66 * MIB);
  // The thread may have just begun.
  await expect.poll(file).toBeGreaterThan(8 * MIB);
  await stores.close();
  expect(existsSync(`${path()}-wal`)).toBe(false);
  expect(descriptorsOf(path())).toBe(0);
  const again = createSqliteStores({ path: path() });
  await expectAll(again, written);
  await again.close();
});

const SECTOR = 512;
const CUTS = isNightly ? 12 : 4;
/** Answers between two looks at the file. */
const LOOK_EVERY = 16;

/** What tells a log from the one before it. */
function headOfLog(): string {
  const descriptor = openSync(`${path()}-wal`, "r");
  const head = Buffer.alloc(24);
  readSync(descriptor, head);
  closeSync(descriptor);
  return head.toString("hex");
}

/** Each part of a file that was not flushed is on the disk in one of its versions. */
function mixed(flushed: Buffer, now: Buffer): Buffer {
  const disk = Buffer.from(now);
  for (let at = 0; at < disk.length; at += SECTOR)
    if (Math.random() < 0.5) {
      const old = flushed.subarray(at, at + SECTOR);
      disk.fill(0, at, at + SECTOR);
      old.copy(disk, at);
    }
  return disk;
}

/** What the disk has, and how much was answered then. */
interface Cut {
  readonly file: Buffer;
  readonly log: Buffer;
  readonly written: number;
}

test("no confirmed data is lost if the power fails during a checkpoint", async () => {
  const stores = createSqliteStores({ path: path() });
  const cuts: Cut[] = [];
  let generation = headOfLog();
  /** A log begins again once the file is on disk. */
  let flushed = readFileSync(path());
  let before = flushed;
  const written: Written[] = [];
  const look = (all: readonly Written[]) => {
    const salts = headOfLog();
    const begins = salts !== generation;
    generation = salts;
    if (!begins && (cuts.length === CUTS || all.length % LOOK_EVERY !== 0)) return;
    const now = readFileSync(path());
    if (begins) flushed = now;
    // The thread has written something since the last look.
    else if (!now.equals(before) && !now.equals(flushed))
      cuts.push({
        file: mixed(flushed, now),
        log: readFileSync(`${path()}-wal`),
        written: written.length + all.length,
      });
    before = now;
  };
  written.push(...(await write(stores, 32 * MIB, look)));
  // How much of its work the thread does between two looks depends on the machine.
  for (let more = 0; cuts.length <= 2 && more < 4; more++)
    written.push(...(await write(stores, 16 * MIB, look)));
  await stores.close();
  expect(cuts.length).toBeGreaterThan(2);
  for (const cut of cuts) {
    const copy = join(await temporaryFolder(), "skein.db");
    writeFileSync(copy, cut.file);
    writeFileSync(`${copy}-wal`, cut.log);
    const again = createSqliteStores({ path: copy });
    await expectAll(again, written.slice(0, cut.written));
    await again.close();
    const found = new DatabaseSync(copy);
    expect(found.prepare("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
    found.close();
  }
});

test("output that can wait is not committed while the log restarts, for a limited time", async () => {
  other.code = 'require("node:worker_threads").parentPort.on("message", () => {})';
  vi.useFakeTimers({ toFake: ["performance"] });
  const stores = createSqliteStores({ path: path() });
  await write(stores, 10 * MIB);
  const { lease } = await claimed(stores, "t");
  const restarts = (flag: 0 | 1) => Atomics.store(other.flags, 1, flag);
  for (const end of [() => restarts(0), () => vi.advanceTimersByTime(250)]) {
    restarts(1);
    let isWritten = false;
    const writing = stores.events.append(lease, [note("x")]).then(() => {
      isWritten = true;
    });
    await turn();
    await turn();
    expect(isWritten).toBe(false);
    end();
    await writing;
  }
  await stores.close();
});

test("if the thread that copies the log dies, the server logs it and the log stays limited", async () => {
  other.code = "throw new Error('out of luck')";
  const lines: { readonly details: object; readonly message: string }[] = [];
  const logger: Logger = {
    info() {},
    warn: (details, message) => void lines.push({ details, message }),
    error() {},
  };
  const stores = createSqliteStores({ path: path(), logger });
  await write(stores, 12 * MIB);
  await expect.poll(() => lines.map((line) => line.message)).toEqual([expect.stringContaining("has ended")]);
  const before = log();
  const written = await write(stores, 24 * MIB);
  expect(log()).toBeLessThan(before + 12 * MIB);
  await expectAll(stores, written);
  await stores.close();
});

test("if the disk refuses a flush by the thread, the database is closed, and nothing is confirmed that could be lost", async () => {
  other.code = `
    const { parentPort } = require("node:worker_threads");
    parentPort.on("message", () => parentPort.postMessage({ error: "disk I/O error", isLost: true }));`;
  const stores = createSqliteStores({ path: path() });
  const refusal = {
    code: "unavailable",
    message: expect.stringMatching(/disk I\/O error.*until the server restarts/),
  };
  // It ends with the refusal, however long the thread takes to begin.
  await expect(write(stores, 2048 * MIB)).rejects.toMatchObject(refusal);
  await expect(stores.ping()).rejects.toMatchObject(refusal);
  await stores.close();
});

test("a version of SQLite that can lose pages with two threads gets no thread", () => {
  const may = (sqlite: string) => threadsCanShare("linux", sqlite);
  expect(["3.44.6", "3.50.4", "3.51.2"].filter(may)).toEqual([]);
  expect(["3.51.3", "3.52.0", "3.53.4", "4.0.0"].filter((each) => !may(each))).toEqual([]);
  expect(threadsCanShare("win32", "3.53.4")).toBe(false);
});
