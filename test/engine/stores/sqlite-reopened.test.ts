// What is there when a database is opened again, also after its process was killed.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { tokenHash } from "../../../src/agent/core/deferred-calls.ts";
import { NO_USAGE } from "../../../src/agent/core/message.ts";
import { createHttpToolStore } from "../../../src/agent/tools/http/store.ts";
import { createSqliteStores } from "../../../src/engine/stores/sqlite/index.ts";
import { createLedger } from "../../../src/sandbox/ledger.ts";
import { ADA, done, readAll, seqsOf, upTo } from "./fixture.ts";
import { BOX, CALL, HOUR, MIB, temporaryDatabase, WEATHER } from "./sqlite-file.ts";

const { dataDir, inFile, path } = temporaryDatabase();

test("HTTP tools and deferred calls survive reopening the database, even with an earlier clock", async () => {
  let time = Date.parse("2026-11-21T10:00:00.000Z");
  const options = { path: path(), now: () => time };
  const stores = createSqliteStores(options);
  await createHttpToolStore(stores.documents, MIB).put("acme", WEATHER);
  await stores.threads.create(ADA, { id: "t", metadata: {} });
  const other = { ...CALL, call_id: "call_2", token_hash: tokenHash("other") };
  for (const call of [CALL, other]) {
    await stores.deferredCalls.open(call);
    await stores.deferredCalls.accept(call);
  }
  await stores.deferredCalls.deliver(other.token_hash, { result: 4 });
  expect(await stores.deferredCalls.due(10)).toMatchObject([{ call_ids: ["call_2"] }]);
  await stores.close();

  const { documents, deferredCalls, close } = createSqliteStores(options);
  const httpTools = createHttpToolStore(documents, MIB);
  expect(await httpTools.list("acme")).toEqual([WEATHER]);
  expect(await deferredCalls.get(CALL)).toEqual({ ...CALL, state: "accepted" });
  expect(await deferredCalls.get(other)).toEqual({ ...other, state: "delivered", reply: { result: 4 } });
  expect(await deferredCalls.due(10)).toEqual([]);
  time += 10_000;
  expect(await deferredCalls.due(10)).toMatchObject([{ call_ids: ["call_2"] }]);
  expect(await deferredCalls.deliver(CALL.token_hash, { result: 5 })).toMatchObject({ state: "delivered" });
  await close();

  time -= HOUR;
  const later = createSqliteStores(options);
  const [due] = await later.deferredCalls.due(10);
  expect(due?.call_ids.toSorted()).toEqual(["call_1", "call_2"]);
  await later.close();
});

test("quotas are in a file next to it, opened and closed with it", async () => {
  const spent = { agent: "a", model: "m", cost: 5, usage: NO_USAGE };
  const stores = createSqliteStores({ path: path(), now: () => 0 });
  await stores.quotas.settle(ADA, "1", spent);
  await stores.close();
  await expect(stores.quotas.take(ADA, { tenant: 1, user: 1 })).rejects.toMatchObject({
    code: "unavailable",
  });
  await expect(stores.quotas.accounts(ADA)).rejects.toMatchObject({ code: "unavailable" });
  const again = createSqliteStores({ path: path(), now: () => 0 });
  expect(await again.quotas.accounts(ADA)).toMatchObject({ now: 0, user: { day: { cost: 5 } } });
  await again.close();
});

test("a quota file that cannot be used is named, and nothing stays open for it", async () => {
  const usage = join(dataDir(), "usage.db");
  writeFileSync(usage, "not a database ".repeat(1000));
  for (let n = 0; n < 2; n++) expect(() => createSqliteStores({ path: path() })).toThrow(usage);
  rmSync(usage);
  await createSqliteStores({ path: path() }).close();
});

test("the ledger of sandboxes is unchanged after the database is reopened", async () => {
  let time = 0;
  const options = { path: path(), now: () => time };
  const caps = { total: 2, tenant: 2 };
  const stores = createSqliteStores(options);
  await createLedger(stores.documents).enter(BOX, caps);
  await createLedger(stores.documents).enter({ ...BOX, id: "sb_2" }, caps);
  const seen = await createLedger(stores.documents).get("sb_2");
  const begun = seen && (await createLedger(stores.documents).begin(seen));
  if (!begun) throw new Error("It could not be begun.");
  const before = await createLedger(stores.documents).get("sb_1");
  await stores.close();

  const { documents, close } = createSqliteStores(options);
  const sandboxes = createLedger(documents);
  expect(await sandboxes.get("sb_1")).toEqual(before);
  expect(await sandboxes.get("sb_2")).toEqual(begun);
  expect(await sandboxes.enter({ ...BOX, id: "sb_3" }, caps)).toBe("tenant");
  expect(await sandboxes.settle(begun, "stopped")).toBe(true);
  time = HOUR;
  expect(await sandboxes.due(10)).toMatchObject([{ id: "sb_1", state: "running" }]);
  time = 2 * HOUR;
  expect(await sandboxes.due(10)).toMatchObject([{ id: "sb_1" }, { id: "sb_2", state: "stopped" }]);
  await close();
});

describe("a database in another process", () => {
  let child: ChildProcess | undefined;
  afterEach(() => void child?.kill("SIGKILL"));

  /** Resolves with the last number that the writer has printed, once it is at least `atLeast`. */
  async function writes(writer: ChildProcess, atLeast: number): Promise<number> {
    if (!writer.stdout) throw new Error("It has no output.");
    for await (const line of createInterface(writer.stdout)) if (Number(line) >= atLeast) return Number(line);
    throw new Error("The writer ended by itself.");
  }

  test("is refused while that process lives, and loses nothing if it is killed during a write", async () => {
    child = spawn(
      process.execPath,
      [fileURLToPath(new URL("./endless-writer.ts", import.meta.url)), path()],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    const acknowledged = await writes(child, 300);
    // Several times, because a write in progress also refuses others.
    for (let times = 0; times < 10; times++)
      expect(() => createSqliteStores({ path: path() })).toThrow(
        expect.objectContaining({
          code: "unavailable",
          message: expect.stringMatching(`${path()}.*in use by another process`),
        }),
      );
    child.kill("SIGKILL");
    await once(child, "exit");

    const stores = createSqliteStores({ path: path() });
    try {
      const [run] = (await stores.runs.list(ADA, "t", { limit: 10 })).items;
      const key = { owner: ADA, thread_id: "t", run_id: run?.id ?? "" };
      const { last } = await stores.events.bounds(key);
      expect(last).toBeGreaterThanOrEqual(acknowledged);
      expect([0, 8]).toContain(last % 10);
      const messages = await stores.threads.messages(ADA, "t");
      expect(messages.map(({ content }) => content)).toEqual(
        upTo(Math.floor(last / 10)).map((n) => `${10 * n - 1}`),
      );
      expect(await stores.threads.state(ADA, "t")).toEqual({ count: last - (last % 10) });

      const [claim] = await stores.runs.claimAbandoned(100);
      if (!claim) throw new Error("It was not taken over.");
      expect(claim.run).toMatchObject({ id: run?.id, attempt: 2 });
      expect(await stores.runs.inbox(claim.lease)).toMatchObject([{ content: "left" }]);
      expect(await stores.runs.renew(claim.lease)).toEqual({ stop: "interrupt" });
      await stores.events.append(claim.lease, [done()]);
      // The message that was left joins the thread before the end.
      expect(seqsOf(await readAll(stores, key))).toEqual(upTo(last + 2));
    } finally {
      await stores.close();
    }
    inFile((file) => {
      expect(file.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
      expect(file.prepare("PRAGMA foreign_key_check").all()).toEqual([]);
    });
  });
});
