// What the ledger of sandboxes promises to the processes that share it.

import { describe, expect, test } from "vitest";
import type { Sandbox } from "../../src/sandbox/sandbox-records.ts";
import { BOB, type Open } from "../engine/stores/fixture.ts";
import {
  begin,
  box,
  FOR_EVER,
  KEEP,
  MANY,
  ONE_EACH,
  START,
  withLedgerOf,
} from "../engine/stores/fixture-sandboxes.ts";
import { dueSandboxesContract } from "./sandboxes-due.ts";
import { endingSandboxesContract } from "./sandboxes-ending.ts";

const of = (tenant: string): Partial<Sandbox> => ({ owner: { tenant, user: "ada" } });

export function sandboxesContract(open: Open): void {
  const withLedger = withLedgerOf(open);

  describe("an entered sandbox", () => {
    test("is running and in use", () =>
      withLedger(async (ledger) => {
        expect(await ledger.get("a")).toBeUndefined();
        expect(await ledger.enter(box("a"), MANY)).toBe("entered");
        expect(await ledger.get("a")).toEqual({
          ...box("a"),
          ...{ state: "running", used_at: START, revision: expect.any(String) },
        });
      }));

    test("stays on its engine: only one of several callers that name others is right", () =>
      withLedger(async (ledger) => {
        const names = ["x", "y", "z"];
        const answers = await Promise.all(names.map((engine) => ledger.enter(box("a", { engine }), MANY)));
        expect([...answers].sort()).toEqual(["elsewhere", "elsewhere", "entered"]);
        const engine = names[answers.indexOf("entered")];
        expect(await ledger.get("a")).toMatchObject({ engine, state: "running" });
        await ledger.adopt(box("a", { engine: "other" }), "removed");
        expect(await ledger.get("a")).toMatchObject({ engine, state: "running" });
      }));

    test("is updated when it is entered again", () =>
      withLedger(async (ledger, { advance }) => {
        await ledger.enter(box("a"), MANY);
        advance(5);
        const changed = box("a", { owner: BOB, name: "play", keep: { ...KEEP, running: null } });
        expect(await ledger.enter(changed, MANY)).toBe("entered");
        expect(await ledger.get("a")).toMatchObject({ ...changed, state: "running", used_at: START + 5 });
      }));

    test.each(["stopped", "removed"] as const)("runs again after it was %s", (state) =>
      withLedger(async (ledger) => {
        await ledger.adopt(box("a"), state);
        expect(await ledger.enter(box("a"), MANY)).toBe("entered");
        expect(await ledger.get("a")).toMatchObject({ state: "running" });
      }),
    );

    test("does not change if the caller changes its own copy", () =>
      withLedger(async (ledger) => {
        const keep = { ...KEEP };
        await ledger.enter(box("a", { keep }), MANY);
        keep.running = 0;
        expect((await ledger.get("a"))?.keep).toEqual(KEEP);
      }));
  });

  describe("the caps", () => {
    test("apply to all tenants together, and to each", () =>
      withLedger(async (ledger) => {
        const caps = { total: 3, tenant: 2 };
        for (const id of ["a", "b"]) expect(await ledger.enter(box(id), caps)).toBe("entered");
        expect(await ledger.enter(box("c", { owner: BOB }), caps)).toBe("tenant");
        expect(await ledger.enter(box("d", of("other")), caps)).toBe("entered");
        expect(await ledger.enter(box("e", of("third")), caps)).toBe("total");
        expect(await ledger.enter(box("c"), caps)).toBe("tenant");
        expect(await ledger.get("e")).toBeUndefined();
      }));

    test("apply to each engine, of which each caller names its own", () =>
      withLedger(async (ledger) => {
        const on = (engine: string, id: string) =>
          ledger.enter(box(id, { engine }), { total: 9, tenant: 9, engine: 1 });
        expect(await on("a", "one")).toBe("entered");
        expect(await on("a", "two")).toBe("engine");
        expect(await on("b", "two")).toBe("entered");
        expect(await on("a", "two")).toBe("elsewhere");
        const idle = async (engine: string) => (await ledger.idle(0, 9, { engine })).map(({ id }) => id);
        expect([await idle("a"), await idle("b"), await idle("c")]).toEqual([["one"], ["two"], []]);
        const stopping = await begin(ledger, "one");
        expect(await on("a", "three")).toBe("engine");
        await ledger.settle(stopping, "stopped");
        expect(await on("a", "three")).toBe("entered");
      }));

    test("never refuse a running sandbox", () =>
      withLedger(async (ledger) => {
        await ledger.enter(box("a"), MANY);
        expect(await ledger.enter(box("a"), { total: 0, tenant: 0 })).toBe("entered");
      }));

    test("count only sandboxes that run or are ending, found or entered", () =>
      withLedger(async (ledger) => {
        const caps = { total: 2, tenant: 2 };
        await ledger.adopt(box("stopped"), "stopped");
        await ledger.adopt(box("removed"), "removed");
        await ledger.adopt(box("found"), "running");
        expect(await ledger.enter(box("ending"), caps)).toBe("entered");
        const begun = await begin(ledger, "ending");
        expect(await ledger.enter(box("a"), caps)).toBe("tenant");
        await ledger.settle(begun, "stopped");
        expect(await ledger.enter(box("a"), caps)).toBe("entered");
        expect(await ledger.enter(box("stopped"), caps)).toBe("tenant");
      }));

    test("do not confuse tenants with similar names", () =>
      withLedger(async (ledger) => {
        const tenants = ["a", "A", "a\u0000", "a\u0000b", 'a","b', "", "\ud800", "\ud801", "null"];
        for (const tenant of tenants)
          expect(await ledger.enter(box(`sb_${tenants.indexOf(tenant)}`, of(tenant)), ONE_EACH)).toBe(
            "entered",
          );
        expect(await ledger.get("sb_6")).toMatchObject({ owner: { tenant: "\ud800", user: "ada" } });
      }));

    test("hold if ten callers ask at once", () =>
      withLedger(async (ledger) => {
        const ids = Array.from({ length: 10 }, (_, n) => `sb_${n}`);
        const answers = await Promise.all(ids.map((id) => ledger.enter(box(id), { total: 3, tenant: 9 })));
        expect(answers.toSorted()).toEqual([...Array(3).fill("entered"), ...Array(7).fill("total")]);
      }));
  });

  describe("the disk of a tenant's sandboxes", () => {
    const caps = { ...MANY, tenantDisk: 10 };

    test("includes stopped ones until their files are removed", () =>
      withLedger(async (ledger) => {
        expect(await ledger.enter(box("a", { disk: 6 }), caps)).toBe("entered");
        const begun = await begin(ledger, "a");
        await ledger.settle(begun, "removed");
        expect(await ledger.enter(box("b", { disk: 6 }), caps)).toBe("disk");
        expect(await ledger.get("b")).toBeUndefined();
        expect(await ledger.enter(box("b", { disk: 6, ...of("other") }), caps)).toBe("entered");
        expect(await ledger.enter(box("a", { disk: 6 }), caps)).toBe("entered");
        await ledger.settle(await begin(ledger, "a"), "gone");
        expect(await ledger.enter(box("c", { disk: 10 }), caps)).toBe("entered");
      }));

    test("refuses one whose disk exceeds it, and counts its largest disk", () =>
      withLedger(async (ledger) => {
        for (const id of ["a", "b"]) expect(await ledger.enter(box(id, { disk: 5 }), caps)).toBe("entered");
        expect(await ledger.enter(box("a", { disk: 6 }), caps)).toBe("disk");
        expect(await ledger.enter(box("a", { disk: 1 }), caps)).toBe("entered");
        expect(await ledger.enter(box("c", { disk: 1 }), caps)).toBe("disk");
      }));

    test("never blocks files whose disk was not recorded, and counts them from then on", () =>
      withLedger(async (ledger) => {
        await ledger.adopt(box("found"), "stopped");
        expect(await ledger.enter(box("a", { disk: 10 }), caps)).toBe("entered");
        expect(await ledger.enter(box("found", { disk: 5 }), caps)).toBe("entered");
        await ledger.settle(await begin(ledger, "a"), "gone");
        expect(await ledger.enter(box("b", { disk: 6 }), caps)).toBe("disk");
      }));

    test("holds if ten callers ask at once, on several engines", () =>
      withLedger(async (ledger) => {
        const boxes = Array.from({ length: 10 }, (_, n) => box(`sb_${n}`, { disk: 3, engine: `e${n % 2}` }));
        const answers = await Promise.all(boxes.map((each) => ledger.enter(each, caps)));
        expect(answers.toSorted()).toEqual([...Array(7).fill("disk"), ...Array(3).fill("entered")]);
      }));

    test("holds if two running ones grow at once", () =>
      withLedger(async (ledger) => {
        for (const id of ["a", "b"]) await ledger.enter(box(id, { disk: 4 }), caps);
        const answers = await Promise.all(["a", "b"].map((id) => ledger.enter(box(id, { disk: 6 }), caps)));
        expect(answers.toSorted()).toEqual(["disk", "entered"]);
      }));
  });

  describe("use", () => {
    test("is recorded only for running sandboxes", () =>
      withLedger(async (ledger, { advance }) => {
        for (const id of ["a", "b"]) await ledger.enter(box(id), MANY);
        for (const state of ["stopped", "removed"] as const) await ledger.adopt(box(state), state);
        await ledger.enter(box("ending"), MANY);
        await begin(ledger, "ending");
        const others = ["b", "stopped", "removed", "ending"];
        const before = await Promise.all(others.map((id) => ledger.get(id)));
        advance(10);
        await ledger.touch(["a", "stopped", "removed", "ending", "none"]);
        await ledger.touch([]);
        expect(await ledger.get("a")).toMatchObject({ ...box("a"), state: "running", used_at: START + 10 });
        expect(await Promise.all(others.map((id) => ledger.get(id)))).toEqual(before);
        expect(await ledger.get("none")).toBeUndefined();
      }));
  });

  describe("a sandbox without a record", () => {
    test.each(["running", "stopped", "removed"] as const)("is entered as %s and in use", (state) =>
      withLedger(async (ledger, { advance }) => {
        advance(3);
        await ledger.adopt(box("a"), state);
        expect(await ledger.get("a")).toMatchObject({ ...box("a"), state, used_at: START + 3 });
      }),
    );

    test("does not change an existing record", () =>
      withLedger(async (ledger, { advance }) => {
        await ledger.enter(box("a"), MANY);
        const before = await ledger.get("a");
        advance(3);
        await ledger.adopt(box("a", { owner: BOB, name: "x", keep: FOR_EVER }), "removed");
        expect(await ledger.get("a")).toEqual(before);
      }));
  });

  endingSandboxesContract(open);
  dueSandboxesContract(open);
}
