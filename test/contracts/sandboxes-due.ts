// What the ledger of sandboxes promises to those who look for unused sandboxes.

import { describe, expect, test } from "vitest";
import { omitUndefined } from "../../src/lib/omit-undefined.ts";
import type { Open } from "../engine/stores/fixture.ts";
import {
  begin,
  box,
  FOR_EVER,
  KEEP,
  MANY,
  MINUTE,
  withLedgerOf,
} from "../engine/stores/fixture-sandboxes.ts";

export function dueSandboxesContract(open: Open): void {
  const withLedger = withLedgerOf(open);

  describe("due sandboxes", () => {
    test.each([
      ["running", KEEP.running],
      ["stopped", KEEP.container],
      ["removed", KEEP.files],
    ] as const)("%s: only after their idle time", (state, time) =>
      withLedger(async (ledger, { advance }) => {
        await ledger.adopt(box("a"), state);
        await ledger.adopt(box("unlimited", { keep: FOR_EVER }), state);
        advance(time - 1);
        expect(await ledger.due(10)).toEqual([]);
        advance(1);
        expect(await ledger.due(10)).toEqual([await ledger.get("a")]);
      }),
    );

    test("are counted from the last use, not from later changes", () =>
      withLedger(async (ledger, { advance }) => {
        await ledger.enter(box("a"), MANY);
        advance(KEEP.running - 1);
        await ledger.touch(["a"]);
        advance(KEEP.running - 1);
        expect(await ledger.due(10)).toEqual([]);
        advance(1);
        const [seen] = await ledger.due(10);
        const begun = seen && (await ledger.begin(seen));
        if (!begun) throw new Error("It was not due, or could not be begun.");
        await ledger.settle(begun, "stopped");
        advance(KEEP.container - KEEP.running - 1);
        expect(await ledger.due(10)).toEqual([]);
        advance(1);
        expect(await ledger.due(10)).toMatchObject([{ id: "a", state: "stopped" }]);
      }));

    test("follow the settings of the newest entry", () =>
      withLedger(async (ledger, { advance }) => {
        await ledger.enter(box("a"), MANY);
        await ledger.enter(box("a", { keep: { ...KEEP, running: 1 } }), MANY);
        advance(1);
        expect(await ledger.due(10)).toMatchObject([{ id: "a" }]);
        await ledger.enter(box("a", { keep: FOR_EVER }), MANY);
        advance(1000 * MINUTE);
        expect(await ledger.due(10)).toEqual([]);
      }));

    test("are returned in the order in which they became due, up to the requested number", () =>
      withLedger(async (ledger, { advance }) => {
        await ledger.adopt(box("third", { keep: { ...KEEP, running: 30 } }), "running");
        await ledger.adopt(box("first", { keep: { ...KEEP, container: 10 } }), "stopped");
        await ledger.adopt(box("second", { keep: { ...KEEP, files: 20 } }), "removed");
        advance(100);
        const ids = async (limit: number) => (await ledger.due(limit)).map(({ id }) => id);
        expect(await ids(10)).toEqual(["first", "second", "third"]);
        expect(await ids(2)).toEqual(["first", "second"]);
      }));
  });

  test("are idle if they run and were not used for that long, longest first, up to the requested number", () =>
    withLedger(async (ledger, { advance }) => {
      await ledger.adopt(box("stopped"), "stopped");
      for (const id of ["c", "b", "a", "ending"]) {
        await ledger.enter(box(id, { keep: FOR_EVER }), MANY);
        advance(10);
      }
      await begin(ledger, "ending");
      const ids = async (idleMs: number, limit = 10) =>
        (await ledger.idle(idleMs, limit)).map(({ id }) => id);
      expect(await ids(20)).toEqual(["c", "b", "a"]);
      expect(await ids(30)).toEqual(["c", "b"]);
      expect(await ids(41)).toEqual([]);
      expect(await ids(0, 1)).toEqual(["c"]);
      await ledger.touch(["c"]);
      expect(await ids(30)).toEqual(["b"]);
      expect(await ledger.idle(30, 1)).toEqual([await ledger.get("b")]);
    }));

  test("come first from the tenant that has most, and can be limited to one tenant", () =>
    withLedger(async (ledger, { advance }) => {
      const entered = ["light", "heavy", "heavy", "other", "heavy", "other"];
      for (const [n, tenant] of entered.entries()) {
        await ledger.enter(box(`${tenant}${n}`, { owner: { tenant, user: "ada" }, keep: FOR_EVER }), MANY);
        advance(10);
      }
      const ids = async (tenant?: string) =>
        (await ledger.idle(0, 10, omitUndefined({ tenant }))).map(({ id }) => id);
      expect(await ids()).toEqual(["heavy1", "heavy2", "heavy4", "other3", "other5", "light0"]);
      expect(await ids("other")).toEqual(["other3", "other5"]);
      expect(await ids("none")).toEqual([]);
    }));
}
