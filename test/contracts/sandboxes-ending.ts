// What the ledger of sandboxes promises of those that are ended: each by one process, and none that is in use.

import { describe, expect, test } from "vitest";
import type { SandboxLedger } from "../../src/sandbox/ledger.ts";
import type { SandboxRecord } from "../../src/sandbox/sandbox-records.ts";
import type { Open } from "../engine/stores/fixture.ts";
import {
  begin,
  box,
  FOR_EVER,
  known,
  MANY,
  MINUTE,
  ONE_EACH,
  START,
  withLedgerOf,
} from "../engine/stores/fixture-sandboxes.ts";

export function endingSandboxesContract(open: Open): void {
  const withLedger = withLedgerOf(open);

  describe("a sandbox that is ending", () => {
    test("cannot be entered until it is settled", () =>
      withLedger(async (ledger, { advance }) => {
        await ledger.enter(box("a"), MANY);
        const begun = await begin(ledger, "a");
        expect(begun).toMatchObject({ state: "ending", used_at: START });
        advance(MINUTE - 1);
        expect(await ledger.enter(box("a"), MANY)).toBe("ending");
        expect(await ledger.get("a")).toEqual(begun);
        expect(await ledger.settle(begun, "stopped")).toBe(true);
        expect(await ledger.enter(box("a"), MANY)).toBe("entered");
      }));

    test("can be claimed for longer than a minute, and moves to another engine once that is recorded", () =>
      withLedger(async (ledger, { advance }) => {
        await ledger.enter(box("a", { engine: "x", disk: 7 }), MANY);
        const begun = await ledger.begin(await known(ledger, "a"), { copy: "y" });
        if (!begun) throw new Error("It could not be begun.");
        expect(begun).toMatchObject({ engine: "x", copy: "y", disk: 7 });
        advance(MINUTE - 1);
        const held = await ledger.extend(begun);
        if (!held) throw new Error("It could not be extended.");
        advance(MINUTE - 1);
        expect(await ledger.extend(begun)).toBeUndefined();
        expect(await ledger.enter(box("a", { engine: "x" }), MANY)).toBe("ending");
        const moved = await ledger.extend(held, { engine: "y", copy: "x" });
        if (!moved) throw new Error("It could not be moved.");
        expect(await ledger.enter(box("a", { engine: "x" }), MANY)).toBe("elsewhere");
        expect(await ledger.settle(held, "stopped")).toBe(false);
        expect(await ledger.settle(moved, "removed", { copy: null })).toBe(true);
        const after = await known(ledger, "a");
        expect(after).toMatchObject({ engine: "y", state: "removed", used_at: START });
        expect(after).not.toHaveProperty("copy");
      }));

    test("remembers the engine of a copy until that is deleted, even while it is used", () =>
      withLedger(async (ledger, { advance }) => {
        await ledger.enter(box("a", { engine: "x" }), MANY);
        await ledger.begin(await known(ledger, "a"), { copy: "y" });
        advance(MINUTE);
        expect(await ledger.enter(box("a", { engine: "x" }), MANY)).toBe("entered");
        await ledger.touch(["a"]);
        expect(await ledger.settle(await begin(ledger, "a"), "stopped")).toBe(true);
        expect(await known(ledger, "a")).toMatchObject({ engine: "x", copy: "y" });
      }));

    test("for a minute belongs to the next user", () =>
      withLedger(async (ledger, { advance }) => {
        await ledger.enter(box("a"), ONE_EACH);
        const late = await begin(ledger, "a");
        advance(MINUTE);
        expect(await ledger.enter(box("b"), ONE_EACH)).toBe("tenant");
        expect(await ledger.enter(box("a"), ONE_EACH)).toBe("entered");
        for (const state of ["stopped", "removed", "gone"] as const)
          expect(await ledger.settle(late, state)).toBe(false);
        expect(await ledger.get("a")).toMatchObject({ state: "running", used_at: START + MINUTE });
      }));

    test("for a minute is due, and is finished by one other process", () =>
      withLedger(async (ledger, { advance }) => {
        await ledger.enter(box("a", { keep: FOR_EVER }), MANY);
        const late = await begin(ledger, "a");
        advance(MINUTE - 1);
        expect(await ledger.due(10)).toEqual([]);
        expect(await ledger.begin(late)).toBeUndefined();
        advance(1);
        const [seen] = await ledger.due(10);
        expect(seen).toEqual(late);
        const begun = await Promise.all([1, 2, 3].map(() => ledger.begin(late)));
        const winners = begun.filter((one) => one !== undefined);
        expect(winners).toHaveLength(1);
        expect(await ledger.due(10)).toEqual([]);
        expect(await ledger.enter(box("a"), MANY)).toBe("ending");
        expect(await ledger.settle(late, "gone")).toBe(false);
        for (const winner of winners) expect(await ledger.settle(winner, "removed")).toBe(true);
        expect(await ledger.get("a")).toMatchObject({ state: "removed", used_at: START });
      }));
  });

  describe("begin", () => {
    const USES: [what: string, use: (ledger: SandboxLedger, seen: SandboxRecord) => Promise<unknown>][] = [
      ["entered", (ledger, seen) => ledger.enter(seen, MANY)],
      ["used", (ledger) => ledger.touch(["a"])],
      ["begun by another", (ledger, seen) => ledger.begin(seen)],
      [
        "deleted and entered",
        async (ledger, seen) => {
          await ledger.settle(seen, "gone");
          await ledger.enter(seen, MANY);
        },
      ],
    ];
    test.each(USES)("does nothing if it was %s in the same millisecond", (_, use) =>
      withLedger(async (ledger) => {
        await ledger.enter(box("a"), MANY);
        const seen = await known(ledger, "a");
        await use(ledger, seen);
        const before = await known(ledger, "a");
        expect(await ledger.begin(seen)).toBeUndefined();
        expect(await ledger.settle(seen, "gone")).toBe(false);
        expect(await ledger.get("a")).toEqual(before);
      }),
    );

    test("does nothing to a removed sandbox", () =>
      withLedger(async (ledger) => {
        await ledger.adopt(box("a"), "removed");
        const seen = await known(ledger, "a");
        await ledger.settle(seen, "gone");
        expect(await ledger.begin(seen)).toBeUndefined();
        expect(await ledger.get("a")).toBeUndefined();
      }));

    test("and entering at once: one of them comes first, and the other fails", () =>
      withLedger(async (ledger) => {
        await ledger.adopt(box("a"), "stopped");
        const seen = await known(ledger, "a");
        const [begun, entered] = await Promise.all([ledger.begin(seen), ledger.enter(box("a"), MANY)]);
        expect([begun !== undefined, entered]).toEqual(begun ? [true, "ending"] : [false, "entered"]);
      }));
  });

  describe("a permanently lost engine", () => {
    test("takes the sandboxes whose files it had, running or not, and frees their places", () =>
      withLedger(async (ledger) => {
        await ledger.enter(box("a", { engine: "x" }), ONE_EACH);
        await ledger.adopt(box("b", { engine: "x" }), "removed");
        expect([await ledger.forget("a", "x"), await ledger.forget("b", "x")]).toEqual(["lost", "lost"]);
        expect(await ledger.list()).toEqual([]);
        expect(await ledger.enter(box("c", { engine: "y" }), ONE_EACH)).toBe("entered");
        expect(await ledger.forget("c", "x")).toBeUndefined();
        expect(await ledger.forget("a", "x")).toBeUndefined();
        expect(await known(ledger, "c")).toMatchObject({ engine: "y", state: "running" });
      }));

    test("leaves a moving sandbox the files on the other engine, and ends the move", () =>
      withLedger(async (ledger) => {
        for (const id of ["from", "to"]) await ledger.adopt(box(id, { engine: id }), "stopped");
        const moves = await Promise.all(
          ["from", "to"].map(async (id) =>
            ledger.begin(await known(ledger, id), { copy: id === "from" ? "to" : "from" }),
          ),
        );
        expect(await ledger.forget("from", "from")).toBe("kept");
        expect(await ledger.forget("to", "from")).toBeUndefined();
        expect(await known(ledger, "from")).toMatchObject({ engine: "to", state: "removed" });
        for (const id of ["from", "to"]) {
          expect(await known(ledger, id)).toMatchObject({ engine: "to" });
          expect(await known(ledger, id)).not.toHaveProperty("copy");
        }
        for (const begun of moves) expect(begun && (await ledger.extend(begun))).toBeUndefined();
      }));
  });

  describe("a settled sandbox", () => {
    test("keeps its last use; a removed one is deleted", () =>
      withLedger(async (ledger, { advance }) => {
        await ledger.enter(box("a"), MANY);
        advance(7);
        for (const state of ["stopped", "removed"] as const) {
          expect(await ledger.settle(await begin(ledger, "a"), state)).toBe(true);
          expect(await ledger.get("a")).toMatchObject({ ...box("a"), state, used_at: START });
        }
        expect(await ledger.settle(await begin(ledger, "a"), "gone")).toBe(true);
        expect(await ledger.get("a")).toBeUndefined();
      }));

    test("can be observed in a state, unless it was used since then", () =>
      withLedger(async (ledger) => {
        await ledger.enter(box("a"), MANY);
        const seen = await known(ledger, "a");
        await ledger.touch(["a"]);
        expect(await ledger.settle(seen, "stopped")).toBe(false);
        expect(await ledger.settle(await known(ledger, "a"), "stopped")).toBe(true);
        expect(await ledger.get("a")).toMatchObject({ state: "stopped" });
      }));
  });
}
