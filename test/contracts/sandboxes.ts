// What the ledger of sandboxes promises to the processes that share it.

import { describe, expect, test } from "vitest";
import type { Sandbox, SandboxCaps, SandboxLedger, SandboxRecord } from "../../src/core/sandboxes.ts";
import { ADA, BOB, inWorld, type Open, type World } from "../stores/fixture.ts";

const MINUTE = 60_000;
const START = Date.parse("2026-11-21T10:00:00.000Z");
const MANY: SandboxCaps = { total: 100, tenant: 100 };
const KEEP = { running: 15 * MINUTE, container: 60 * MINUTE, files: 600 * MINUTE };

const box = (id: string, more: Partial<Sandbox> = {}): Sandbox => ({
  ...{ id, owner: ADA, name: "work", keep: KEEP },
  ...more,
});
const of = (tenant: string): Partial<Sandbox> => ({ owner: { tenant, user: "ada" } });

export function sandboxesContract(open: Open): void {
  const withLedger = (body: (ledger: SandboxLedger, world: World) => Promise<void>) =>
    inWorld(open, (world) => body(world.stores.sandboxes, world));

  describe("a sandbox that is entered", () => {
    test("runs and is used now", () =>
      withLedger(async (ledger) => {
        expect(await ledger.get("a")).toBeUndefined();
        expect(await ledger.enter(box("a"), MANY)).toBe("entered");
        expect(await ledger.get("a")).toEqual({
          ...box("a"),
          ...{ state: "running", used_at: START, revision: expect.any(String) },
        });
      }));

    test("again is brought up to date", () =>
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

    test("is not changed with what the caller does to its own afterwards", () =>
      withLedger(async (ledger) => {
        const keep = { ...KEEP };
        await ledger.enter(box("a", { keep }), MANY);
        keep.running = 0;
        expect((await ledger.get("a"))?.keep).toEqual(KEEP);
      }));
  });

  describe("the caps", () => {
    test("hold for all tenants, and for each", () =>
      withLedger(async (ledger) => {
        const caps = { total: 3, tenant: 2 };
        for (const id of ["a", "b"]) expect(await ledger.enter(box(id), caps)).toBe("entered");
        expect(await ledger.enter(box("c", { owner: BOB }), caps)).toBe("tenant");
        expect(await ledger.enter(box("d", of("other")), caps)).toBe("entered");
        expect(await ledger.enter(box("e", of("third")), caps)).toBe("total");
        expect(await ledger.enter(box("c"), caps)).toBe("tenant");
        expect(await ledger.get("e")).toBeUndefined();
      }));

    test("never keep out one that runs already", () =>
      withLedger(async (ledger) => {
        await ledger.enter(box("a"), MANY);
        expect(await ledger.enter(box("a"), { total: 0, tenant: 0 })).toBe("entered");
      }));

    test("count what runs or is ending, found or entered, and nothing else", () =>
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

    test("do not take tenants with similar names for one", () =>
      withLedger(async (ledger) => {
        const tenants = ["a", "A", "a\u0000", "a\u0000b", 'a","b', "", "\ud800", "\ud801", "null"];
        for (const tenant of tenants)
          expect(await ledger.enter(box(`sb_${tenants.indexOf(tenant)}`, of(tenant)), ONE_EACH)).toBe(
            "entered",
          );
        expect(await ledger.get("sb_6")).toMatchObject({ owner: { tenant: "\ud800", user: "ada" } });
      }));

    test("hold when ten ask at once", () =>
      withLedger(async (ledger) => {
        const ids = Array.from({ length: 10 }, (_, n) => `sb_${n}`);
        const answers = await Promise.all(ids.map((id) => ledger.enter(box(id), { total: 3, tenant: 9 })));
        expect(answers.toSorted()).toEqual([...Array(3).fill("entered"), ...Array(7).fill("total")]);
      }));
  });

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

    test("for a minute belongs to whoever has use for it", () =>
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
    test.each(USES)("does nothing when it was %s in the same millisecond", (_, use) =>
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

    test("does nothing to one that is gone", () =>
      withLedger(async (ledger) => {
        await ledger.adopt(box("a"), "removed");
        const seen = await known(ledger, "a");
        await ledger.settle(seen, "gone");
        expect(await ledger.begin(seen)).toBeUndefined();
        expect(await ledger.get("a")).toBeUndefined();
      }));

    test("and entering at once: one of them comes first, and the other knows", () =>
      withLedger(async (ledger) => {
        await ledger.adopt(box("a"), "stopped");
        const seen = await known(ledger, "a");
        const [begun, entered] = await Promise.all([ledger.begin(seen), ledger.enter(box("a"), MANY)]);
        expect([begun !== undefined, entered]).toEqual(begun ? [true, "ending"] : [false, "entered"]);
      }));
  });

  describe("what is settled", () => {
    test("keeps its last use; what is gone is forgotten", () =>
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

    test("may have been seen so, unless it was used since", () =>
      withLedger(async (ledger) => {
        await ledger.enter(box("a"), MANY);
        const seen = await known(ledger, "a");
        await ledger.touch(["a"]);
        expect(await ledger.settle(seen, "stopped")).toBe(false);
        expect(await ledger.settle(await known(ledger, "a"), "stopped")).toBe(true);
        expect(await ledger.get("a")).toMatchObject({ state: "stopped" });
      }));
  });

  describe("use", () => {
    test("is noted of what runs, and of nothing else", () =>
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

  describe("what is found without a record", () => {
    test.each(["running", "stopped", "removed"] as const)("is entered as %s and used now", (state) =>
      withLedger(async (ledger, { advance }) => {
        advance(3);
        await ledger.adopt(box("a"), state);
        expect(await ledger.get("a")).toMatchObject({ ...box("a"), state, used_at: START + 3 });
      }),
    );

    test("leaves a record that is there alone", () =>
      withLedger(async (ledger, { advance }) => {
        await ledger.enter(box("a"), MANY);
        const before = await ledger.get("a");
        advance(3);
        await ledger.adopt(box("a", { owner: BOB, name: "x", keep: FOR_EVER }), "removed");
        expect(await ledger.get("a")).toEqual(before);
      }));
  });

  describe("what is due", () => {
    test.each([
      ["running", KEEP.running],
      ["stopped", KEEP.container],
      ["removed", KEEP.files],
    ] as const)("%s: after its time without use, and not before", (state, time) =>
      withLedger(async (ledger, { advance }) => {
        await ledger.adopt(box("a"), state);
        await ledger.adopt(box("for ever", { keep: FOR_EVER }), state);
        advance(time - 1);
        expect(await ledger.due(10)).toEqual([]);
        advance(1);
        expect(await ledger.due(10)).toEqual([await ledger.get("a")]);
      }),
    );

    test("is counted from the last use, whatever came between", () =>
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

    test("follows what the newest entry says of keeping", () =>
      withLedger(async (ledger, { advance }) => {
        await ledger.enter(box("a"), MANY);
        await ledger.enter(box("a", { keep: { ...KEEP, running: 1 } }), MANY);
        advance(1);
        expect(await ledger.due(10)).toMatchObject([{ id: "a" }]);
        await ledger.enter(box("a", { keep: FOR_EVER }), MANY);
        advance(1000 * MINUTE);
        expect(await ledger.due(10)).toEqual([]);
      }));

    test("comes in the order in which it became so, as many as asked for", () =>
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

  test("what is idle runs and was not used for so long, longest ago first, as many as asked for", () =>
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
}

const ONE_EACH: SandboxCaps = { total: 100, tenant: 1 };
const FOR_EVER = { running: null, container: null, files: null };

async function known(ledger: SandboxLedger, id: string): Promise<SandboxRecord> {
  const record = await ledger.get(id);
  if (!record) throw new Error(`There is no \`${id}\`.`);
  return record;
}

async function begin(ledger: SandboxLedger, id: string): Promise<SandboxRecord> {
  const begun = await ledger.begin(await known(ledger, id));
  if (!begun) throw new Error(`\`${id}\` could not be begun.`);
  return begun;
}
