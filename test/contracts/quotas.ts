// What a store of quotas promises: what is used, held and reserved is counted once, for the tenant and for the user.

import { describe, expect, test } from "vitest";
import { ADA, BOB, NEIGHBOURS, ruleTest } from "../engine/stores/fixture.ts";
import { CAROL, HOUR, type OpenQuotas, quotasIn } from "../engine/stores/fixture-quotas.ts";
import { reservationsContract } from "./quotas-reservations.ts";
import { limitsContract } from "./quotas-rules.ts";
import { storedContract } from "./quotas-stored.ts";
import { usedContract } from "./quotas-used.ts";

const limits = (tenant?: number, user?: number) => ({ tenant, user });

export function quotasContract(open: OpenQuotas): void {
  const rule = ruleTest(open);
  const inWorld = quotasIn(open);
  storedContract(open);

  describe("the request rate", () => {
    rule("allows a minute's share at once, then one request after another", () =>
      inWorld(async ({ quotas, elsewhere, advance }) => {
        const answers = [];
        for (let n = 0; n < 60; n++)
          answers.push(await (n % 2 ? quotas : elsewhere).take(ADA, limits(undefined, 60)));
        expect(answers.every((answer) => answer === undefined)).toBe(true);
        expect(await quotas.take(ADA, limits(undefined, 60))).toEqual({ full: "user", wait_ms: 1000 });
        advance(1000);
        expect(await elsewhere.take(ADA, limits(undefined, 60))).toBeUndefined();
        expect(await quotas.take(ADA, limits(undefined, 60))).toEqual({ full: "user", wait_ms: 1000 });
        advance(HOUR);
        for (let n = 0; n < 60; n++) expect(await quotas.take(ADA, limits(undefined, 60))).toBeUndefined();
        expect(await quotas.take(ADA, limits(undefined, 60))).toBeDefined();
      }),
    );

    test("is available again immediately if the clock is set back", () =>
      inWorld(async ({ quotas, advance }) => {
        for (let n = 0; n < 30; n++) expect(await quotas.take(ADA, limits(60, 60))).toBeUndefined();
        advance(-2 * 60_000);
        for (let n = 0; n < 29; n++) expect(await quotas.take(ADA, limits(60, 60))).toBeUndefined();
        advance(-24 * HOUR);
        expect(await quotas.take(ADA, limits(60, 60))).toBeUndefined();
      }));

    rule("of a tenant covers all its users and no others", () =>
      inWorld(async ({ quotas }) => {
        expect(await quotas.take(ADA, limits(2, 2))).toBeUndefined();
        expect(await quotas.take(BOB, limits(2, 2))).toBeUndefined();
        expect(await quotas.take(BOB, limits(2, 2))).toMatchObject({ full: "tenant" });
        expect(await quotas.take(CAROL, limits(2, 2))).toBeUndefined();
      }),
    );

    test("allows no more if many arrive at once", () =>
      inWorld(async ({ quotas, elsewhere }) => {
        const answers = await Promise.all(
          Array.from({ length: 100 }, (_, n) => (n % 2 ? quotas : elsewhere).take(ADA, limits(10))),
        );
        expect(answers.filter((answer) => answer === undefined)).toHaveLength(10);
      }));
  });

  describe("held resources", () => {
    const run = (id: string, ms = HOUR) => ({ thing: "runs" as const, id, ms });

    test("are limited for the user and the tenant", () =>
      inWorld(async ({ quotas, elsewhere }) => {
        expect(await quotas.hold(ADA, run("1"), limits(3, 2))).toBe("new");
        expect(await elsewhere.hold(ADA, run("2"), limits(3, 2))).toBe("new");
        expect(await quotas.hold(ADA, run("3"), limits(3, 2))).toBe("user");
        expect(await quotas.hold(BOB, run("1"), limits(3, 2))).toBe("new");
        expect(await elsewhere.hold(BOB, run("2"), limits(3, 2))).toBe("tenant");
        expect(await quotas.hold(CAROL, run("1"), limits(3, 2))).toBe("new");
        expect(await quotas.hold(ADA, { thing: "streams", id: "1", ms: HOUR }, limits(3, 2))).toBe("new");
        expect(await elsewhere.held(ADA)).toEqual({
          tenant: { runs: 3, streams: 1, threads: 0 },
          user: { runs: 2, streams: 1, threads: 0 },
        });
      }));

    test("become free when they are released, by their own user only", () =>
      inWorld(async ({ quotas, elsewhere }) => {
        await quotas.hold(ADA, run("1"), limits(1));
        await quotas.release(BOB, "runs", "1");
        await quotas.release(ADA, "streams", "1");
        expect(await quotas.hold(ADA, run("2"), limits(1))).toBe("tenant");
        await elsewhere.release(ADA, "runs", "1");
        await elsewhere.release(ADA, "runs", "1");
        expect(await quotas.hold(ADA, run("2"), limits(1))).toBe("new");
      }));

    test("expire after their time unless they are held again", () =>
      inWorld(async ({ quotas, advance }) => {
        await quotas.hold(ADA, run("dies", 1000), limits());
        await quotas.hold(ADA, run("lives", 1000), limits());
        advance(999);
        expect(await quotas.hold(ADA, run("3"), limits(2))).toBe("tenant");
        expect(await quotas.hold(ADA, run("lives", 1000), limits(2))).toBe("kept");
        advance(1);
        expect((await quotas.held(ADA)).user.runs).toBe(1);
        expect(await quotas.hold(ADA, run("3"), limits(2))).toBe("new");
      }));

    test("expire after the maximum time, even if the clock was set back", () =>
      inWorld(async ({ quotas, elsewhere, advance }) => {
        const stream = (id: string) => ({ thing: "streams" as const, id, ms: 1000, longestMs: 1000 });
        await quotas.hold(ADA, stream("dies"), limits());
        await quotas.hold(ADA, stream("lives"), limits());
        await quotas.hold(ADA, run("long"), limits());
        advance(-HOUR);
        expect(await quotas.hold(ADA, stream("3"), limits(2))).toBe("tenant");
        advance(999);
        expect(await elsewhere.hold(ADA, stream("lives"), limits(2))).toBe("kept");
        expect(await elsewhere.hold(ADA, stream("3"), limits(undefined, 2))).toBe("user");
        advance(1);
        expect(await elsewhere.hold(ADA, stream("3"), limits(2, 2))).toBe("new");
        expect((await quotas.held(ADA)).user).toEqual({ streams: 2, runs: 1, threads: 0 });
      }));

    test("count for a shorter time while they are created, and are new until then", () =>
      inWorld(async ({ quotas, elsewhere, advance }) => {
        const thread = { thing: "threads" as const, id: "1", ms: 10 * HOUR };
        const making = { ...thread, makingMs: HOUR };
        const counted = async () => (await quotas.held(ADA)).user.threads;
        expect(await quotas.hold(ADA, making, limits(1))).toBe("new");
        expect(await elsewhere.hold(ADA, making, limits(1))).toBe("new");
        expect(await counted()).toBe(1);
        advance(HOUR);
        expect(await counted()).toBe(0);
        expect(await quotas.hold(ADA, making, limits(1))).toBe("new");
        expect(await elsewhere.hold(ADA, thread, limits(1))).toBe("kept");
        expect(await quotas.hold(ADA, making, limits(1))).toBe("kept");
        await quotas.release(ADA, "threads", "1", HOUR);
        advance(9 * HOUR);
        expect(await counted()).toBe(1);
        await quotas.release(ADA, "threads", "1", HOUR);
        expect(await counted()).toBe(0);
      }));

    test("are limited even if many arrive at once", () =>
      inWorld(async ({ quotas, elsewhere }) => {
        const answers = await Promise.all(
          Array.from({ length: 100 }, (_, n) =>
            (n % 2 ? quotas : elsewhere).hold(n % 3 ? ADA : BOB, run(`${n}`), limits(10)),
          ),
        );
        expect(answers.filter((answer) => answer === "new")).toHaveLength(10);
      }));

    test.each(NEIGHBOURS)("belong only to their owner: %s", (_, owner, neighbour) =>
      inWorld(async ({ quotas }) => {
        await quotas.hold(owner, run("1"), limits(undefined, 1));
        expect(await quotas.hold(neighbour, run("1"), limits(undefined, 1))).toBe("new");
        const isShared = owner.tenant === neighbour.tenant;
        expect((await quotas.held(owner)).tenant.runs).toBe(isShared ? 2 : 1);
        await quotas.release(neighbour, "runs", "1");
        expect((await quotas.held(owner)).user.runs).toBe(1);
      }),
    );
  });

  limitsContract(open);
  reservationsContract(open);
  usedContract(open);
}
