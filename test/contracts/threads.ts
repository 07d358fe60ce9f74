// What every ThreadStore promises.

import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { readLogRange } from "../../src/engine/runs/follow.ts";
import {
  ADA,
  BOB,
  claimed,
  done,
  failure,
  inWorld,
  message,
  newRun,
  type Open,
  ruleTest,
  said,
  state,
} from "../engine/stores/fixture.ts";
import { beginningContract } from "./threads-beginning.ts";
import { threadContentContract } from "./threads-content.ts";
import { copiedThreadsContract } from "./threads-copied.ts";
import { lifeContract } from "./threads-life.ts";
import { lineageContract } from "./threads-lineage.ts";
import { titlesContract } from "./threads-titles.ts";

export function threadsContract(open: Open): void {
  const rule = ruleTest(open);
  beginningContract(open);
  copiedThreadsContract(open);
  threadContentContract(open);
  lineageContract(open);
  lifeContract(open);
  titlesContract(open);
  describe("threads", () => {
    test("are created once", () =>
      inWorld(open, async ({ stores: { threads } }) => {
        const thread = await threads.create(ADA, { id: "t", title: "Trip", metadata: { color: "red" } });
        expect(thread).toEqual({
          id: "t",
          title: "Trip",
          metadata: { color: "red" },
          status: "idle",
          message_count: 0,
          created_at: "2026-11-21T10:00:00.000Z",
          updated_at: "2026-11-21T10:00:00.000Z",
        });
        expect(await threads.get(ADA, "t")).toEqual(thread);
        await expect(threads.create(ADA, { id: "t", metadata: {} })).rejects.toMatchObject({
          code: "already_exists",
        });
        expect(await threads.get(ADA, "t")).toEqual(thread);
      }));

    rule("and their runs yield to other work, however many are read one after another", () =>
      inWorld(open, async ({ stores }) => {
        const { threads, runs, events } = stores;
        const { lease } = await claimed(stores, "t");
        await events.append(lease, [state("todos", [])]);
        const log = () => readLogRange(events, lease, { after: 0, last: 1 }).next();
        for (const read of [
          () => threads.list(ADA, { limit: 10 }),
          () => threads.state(ADA, "t"),
          () => threads.messages(ADA, "t"),
          () => runs.list(ADA, "t", { limit: 10 }),
          log,
        ]) {
          // Turns that were asked for before are over.
          for (let waited = 0; waited < 2; waited++) await turn();
          await read();
          let turns = 0;
          void turn().then(() => turns++);
          // A slow machine has made the first read ask for a turn, which then comes before this one: the next read waits for both.
          for (let reads = 0; reads < 2; reads++) {
            for (const until = performance.now() + 20; performance.now() < until; );
            await read();
          }
          expect(turns).toBeGreaterThan(0);
        }
      }),
    );

    rule("are renamed and annotated independently", () =>
      inWorld(open, async ({ stores: { threads }, advance }) => {
        await threads.create(ADA, { id: "t", title: "Trip", metadata: { a: 1, b: true } });
        advance(1000);
        expect(await threads.update(ADA, "t", { title: "Journey" })).toMatchObject({
          title: "Journey",
          metadata: { a: 1, b: true },
          updated_at: "2026-11-21T10:00:01.000Z",
          created_at: "2026-11-21T10:00:00.000Z",
        });
        expect(await threads.update(ADA, "t", { metadata: { c: "x" } })).toMatchObject({
          title: "Journey",
          metadata: { c: "x" },
        });
        expect(await threads.get(ADA, "t")).toMatchObject({ title: "Journey", metadata: { c: "x" } });
        expect(await threads.update(ADA, "unknown", { title: "x" })).toBeUndefined();
      }),
    );

    rule("return copies", () =>
      inWorld(open, async ({ stores }) => {
        const { threads } = stores;
        const metadata = { a: 1 };
        const created = await threads.create(ADA, { id: "t", metadata });
        metadata.a = 2;
        created.metadata.a = 3;
        const { lease } = await claimed(stores, "t");
        const event = message("hello");
        await stores.events.append(lease, [event, state("todos", [{ text: "one" }])]);
        event.data.message.content = "changed";
        const todos = (await threads.state(ADA, "t")).todos as { text: string }[];
        if (todos[0]) todos[0].text = "changed";
        expect((await threads.get(ADA, "t"))?.metadata).toEqual({ a: 1 });
        expect((await threads.messages(ADA, "t"))[0]?.content).toBe("hello");
        expect(await threads.state(ADA, "t")).toEqual({ todos: [{ text: "one" }] });
      }),
    );

    test("have the status of their newest run", () =>
      inWorld(open, async ({ stores }) => {
        const { threads, events, runs } = stores;
        const status = async () => (await threads.get(ADA, "t"))?.status;
        await threads.create(ADA, { id: "t", metadata: {} });
        expect(await status()).toBe("idle");
        for (const [end, expected] of [
          [done("interrupted"), "interrupted"],
          [done("success"), "idle"],
          [done("error"), "error"],
          [done("cancelled"), "idle"],
          [failure("broken"), "error"],
        ] as const) {
          const { lease } = await claimed(stores, "t");
          expect(await status()).toBe("busy");
          await events.append(lease, [end]);
          expect(await status()).toBe(expected);
        }
        const { lease } = await claimed(stores, "t");
        await runs.start(ADA, newRun("t"), "queue");
        await events.append(lease, [done()]);
        expect(await status()).toBe("busy");
        expect((await threads.list(ADA, { limit: 10, status: "busy" })).items).toHaveLength(1);
      }));

    rule("that wait for an answer still do after a queued run is cancelled", () =>
      inWorld(open, async ({ stores }) => {
        const { lease } = await claimed(stores, "t");
        const waiting = newRun("t");
        await stores.runs.start(ADA, waiting, "queue");
        await stores.events.append(lease, [done("interrupted")]);
        await stores.runs.requestStop(ADA, "t", waiting.id, "cancel");
        expect((await stores.threads.get(ADA, "t"))?.status).toBe("interrupted");
      }),
    );

    rule("contain the agent of their newest run and their number of messages", () =>
      inWorld(open, async ({ stores, advance }) => {
        const { lease } = await claimed(stores, "t", { agent: "coder" });
        advance(500);
        await stores.events.append(lease, [message("one"), message("two")]);
        expect(await stores.threads.get(ADA, "t")).toMatchObject({
          agent: "coder",
          message_count: 2,
          created_at: "2026-11-21T10:00:00.000Z",
          updated_at: "2026-11-21T10:00:00.500Z",
        });
      }),
    );

    test("are listed by last change, page by page, without repetitions or gaps", () =>
      inWorld(open, async ({ stores: { threads }, advance }) => {
        for (let n = 0; n < 7; n++) {
          await threads.create(ADA, { id: `t${n}`, metadata: {} });
          // Some are created at the same moment.
          if (n % 3 === 0) advance(1000);
        }
        await threads.update(ADA, "t2", { title: "changed last" });
        const seen: string[] = [];
        let cursor: string | undefined;
        do {
          const page = await threads.list(ADA, { limit: 2, ...(cursor === undefined ? {} : { cursor }) });
          expect(page.items.length).toBeLessThanOrEqual(2);
          seen.push(...page.items.map(({ id }) => id));
          cursor = page.next_cursor;
          // What changes meanwhile goes to the front and disturbs no other page.
          if (seen.length === 2) advance(1000);
          if (seen.length === 2) await threads.update(ADA, "t2", { title: "again" });
        } while (cursor !== undefined);
        expect(seen[0]).toBe("t2");
        expect([...seen].sort()).toEqual(["t0", "t1", "t2", "t3", "t4", "t5", "t6"]);
        expect(seen.at(-1)).toBe("t0");
      }));

    test("end their list without a cursor if the last page is full", () =>
      inWorld(open, async ({ stores: { threads } }) => {
        for (const id of ["a", "b"]) await threads.create(ADA, { id, metadata: {} });
        expect(await threads.list(ADA, { limit: 2 })).not.toHaveProperty("next_cursor");
        expect(await threads.list(BOB, { limit: 2 })).toEqual({ items: [] });
      }));

    rule("refuse an invalid cursor", () =>
      inWorld(open, async ({ stores }) => {
        await claimed(stores, "t");
        const forged = ["NaN t", `${"9".repeat(30)} t`, "1 t\u0000", "-1 t", "1e9 t"].map((text) =>
          Buffer.from(text).toString("base64url"),
        );
        for (const cursor of ["", "x", "'; DROP TABLE threads", ...forged]) {
          await expect(stores.threads.list(ADA, { limit: 2, cursor })).rejects.toMatchObject({
            code: "invalid_request",
          });
          await expect(stores.runs.list(ADA, "t", { limit: 2, cursor })).rejects.toMatchObject({
            code: "invalid_request",
          });
        }
      }),
    );

    test("can be found by agent, status and a part of the title in any case", () =>
      inWorld(open, async ({ stores }) => {
        const { threads } = stores;
        await threads.create(ADA, { id: "a", title: "Élan 100%", metadata: {} });
        await threads.create(ADA, { id: "b", title: "plan_b", metadata: {} });
        await threads.create(ADA, { id: "c", metadata: {} });
        await claimed(stores, "b", { agent: "coder" });
        const find = async (query: object) =>
          (await threads.list(ADA, { limit: 10, ...query })).items.map(({ id }) => id).sort();
        expect(await find({ q: "LAN" })).toEqual(["a", "b"]);
        expect(await find({ q: "éLAN" })).toEqual(["a"]);
        expect(await find({ q: "0%" })).toEqual(["a"]);
        expect(await find({ q: "_" })).toEqual(["b"]);
        expect(await find({ agent: "coder" })).toEqual(["b"]);
        expect(await find({ status: "busy" })).toEqual(["b"]);
        expect(await find({ status: "idle" })).toEqual(["a", "c"]);
        expect(await find({ status: "idle", q: "lan" })).toEqual(["a"]);
        expect(await find({ agent: "unknown" })).toEqual([]);
      }));

    test("are deleted with all their contents", () =>
      inWorld(open, async ({ stores }) => {
        const { lease, run } = await claimed(stores, "t", { idempotency_key: "once" });
        await stores.events.append(lease, [message("one"), state("todos", ["a"]), done()]);
        await stores.threads.create(ADA, { id: "other", metadata: {} });
        expect(await stores.threads.delete(ADA, "t")).toBe(true);
        expect(await stores.threads.delete(ADA, "t")).toBe(false);
        expect(await stores.threads.get(ADA, "t")).toBeUndefined();
        expect(await stores.threads.messages(ADA, "t")).toEqual([]);
        expect(await stores.threads.state(ADA, "t")).toEqual({});
        expect(await stores.runs.get(ADA, "t", run.id)).toBeUndefined();
        expect((await stores.threads.list(ADA, { limit: 10 })).items.map(({ id }) => id)).toEqual(["other"]);
        // The id and the key are free again, and nothing of the old thread comes back.
        const again = await claimed(stores, "t", { idempotency_key: "once" });
        expect(again.run.id).not.toBe(run.id);
        expect(await stores.threads.messages(ADA, "t")).toEqual([]);
        expect((await stores.runs.list(ADA, "t", { limit: 10 })).items).toHaveLength(1);
      }));

    test("that are cleared keep their name and their runs, but no messages and state", () =>
      inWorld(open, async ({ stores }) => {
        await stores.threads.create(ADA, { id: "t", title: "Trip", metadata: { a: 1 } });
        const { lease, run } = await claimed(stores, "t");
        const event = message("one");
        await stores.events.append(lease, [event, state("todos", ["a"]), done("interrupted")]);
        expect(await stores.threads.clear(ADA, "t")).toBe(true);
        expect(await stores.threads.get(ADA, "t")).toMatchObject({
          ...{ title: "Trip", metadata: { a: 1 }, message_count: 0, status: "idle" },
        });
        expect(await stores.threads.messages(ADA, "t")).toEqual([]);
        expect(await stores.threads.state(ADA, "t")).toEqual({});
        expect(await stores.runs.get(ADA, "t", run.id)).toMatchObject({ status: "interrupted" });
        expect(await stores.threads.clear(ADA, "unknown")).toBe(false);
        const next = await claimed(stores, "t");
        await stores.events.append(next.lease, [said(event.data.message as never)]);
        expect(await stores.threads.messages(ADA, "t")).toHaveLength(1);
      }));

    rule("cannot be deleted or cleared while a run is active or waiting", () =>
      inWorld(open, async ({ stores }) => {
        const { lease, run } = await claimed(stores, "t");
        await stores.events.append(lease, [message("one")]);
        const waiting = newRun("t");
        await stores.runs.start(ADA, waiting, "queue");
        const refused = async (run_id: string) => {
          const expected = { code: "thread_busy", details: { run_id } };
          await expect(stores.threads.delete(ADA, "t")).rejects.toMatchObject(expected);
          await expect(stores.threads.clear(ADA, "t")).rejects.toMatchObject(expected);
        };
        await refused(run.id);
        await stores.events.append(lease, [done()]);
        await refused(waiting.id);
        expect(await stores.threads.messages(ADA, "t")).toHaveLength(1);
      }),
    );
  });
}
