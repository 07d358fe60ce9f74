// What a store of quotas promises: what is used, held and reserved is counted once, for the tenant and for the user.

import { describe, expect, test } from "vitest";
import { NO_USAGE } from "../../src/core/message.ts";
import {
  type Amounts,
  type Budget,
  MAX_ROWS,
  OTHER,
  type QuotaStore,
  type Spending,
  USAGE_DAYS,
} from "../../src/core/quota-store.ts";
import { ADA, BOB, NEIGHBOURS } from "../stores/fixture.ts";

const START = Date.parse("2026-11-21T10:00:00.000Z");
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const CAROL = { tenant: "other", user: "ada" };

export interface QuotaWorld {
  readonly quotas: QuotaStore;
  /** The same, as another process has it; on a store that one process has for itself, the same one. */
  readonly elsewhere: QuotaStore;
  setTime(time: number): void;
  advance(ms: number): void;
}

interface Opened {
  readonly quotas: QuotaStore;
  close(): void;
}

/** Opens an empty store, twice where it is shared; `now` is its clock. */
export type OpenQuotas = (now: () => number) => Promise<Opened & { readonly elsewhere?: Opened }>;

const spending = (more: Partial<Spending> = {}): Spending => ({
  ...{ agent: "helper", model: "scripted:test", cost: 7 },
  usage: { input_tokens: 60, output_tokens: 40, cache_read_tokens: 10, cache_write_tokens: 5 },
  ...more,
});
const amounts = (tokens: number, cost = 0): Amounts => ({ tokens, cost });
const budgets = (tenant: Budget, user: Budget = {}) => ({ tenant, user });
const limits = (tenant?: number, user?: number) => ({ tenant, user });

export function quotasContract(open: OpenQuotas): void {
  const inWorld = async (body: (world: QuotaWorld) => Promise<void>, start = START) => {
    let time = start;
    const { quotas, close, elsewhere } = await open(() => time);
    try {
      await body({
        quotas,
        elsewhere: elsewhere?.quotas ?? quotas,
        setTime: (to) => {
          time = to;
        },
        advance: (ms) => {
          time += ms;
        },
      });
    } finally {
      elsewhere?.close();
      close();
    }
  };

  describe("the rate of requests", () => {
    test("lets a minute's share come at once, then one after the other", () =>
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
      }));

    test("of a tenant is that of all its users, and of nobody else's", () =>
      inWorld(async ({ quotas }) => {
        expect(await quotas.take(ADA, limits(2, 2))).toBeUndefined();
        expect(await quotas.take(BOB, limits(2, 2))).toBeUndefined();
        expect(await quotas.take(BOB, limits(2, 2))).toMatchObject({ full: "tenant" });
        expect(await quotas.take(CAROL, limits(2, 2))).toBeUndefined();
      }));

    test("does not count what is refused", () =>
      inWorld(async ({ quotas }) => {
        expect(await quotas.take(ADA, limits(3, 1))).toBeUndefined();
        for (let n = 0; n < 10; n++)
          expect(await quotas.take(ADA, limits(3, 1))).toMatchObject({ full: "user" });
        expect(await quotas.take(BOB, limits(3, 1))).toBeUndefined();
      }));

    test("takes no more of many that come at once", () =>
      inWorld(async ({ quotas, elsewhere }) => {
        const answers = await Promise.all(
          Array.from({ length: 100 }, (_, n) => (n % 2 ? quotas : elsewhere).take(ADA, limits(10))),
        );
        expect(answers.filter((answer) => answer === undefined)).toHaveLength(10);
      }));
  });

  describe("what is held", () => {
    const run = (id: string, ms = HOUR) => ({ thing: "runs" as const, id, ms });

    test("is as many as may be, of the user and of the tenant", () =>
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

    test("counts once, however often it is held again", () =>
      inWorld(async ({ quotas, elsewhere }) => {
        expect(await quotas.hold(ADA, run("1"), limits(1, 1))).toBe("new");
        expect(await elsewhere.hold(ADA, run("1"), limits(1, 1))).toBe("kept");
        expect((await quotas.held(ADA)).tenant.runs).toBe(1);
      }));

    test("makes room when it is released, by its own user only", () =>
      inWorld(async ({ quotas, elsewhere }) => {
        await quotas.hold(ADA, run("1"), limits(1));
        await quotas.release(BOB, "runs", "1");
        await quotas.release(ADA, "streams", "1");
        expect(await quotas.hold(ADA, run("2"), limits(1))).toBe("tenant");
        await elsewhere.release(ADA, "runs", "1");
        await elsewhere.release(ADA, "runs", "1");
        expect(await quotas.hold(ADA, run("2"), limits(1))).toBe("new");
      }));

    test("counts no longer when its time is over, unless it was held again", () =>
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

    test("is as many as may be of many that come at once", () =>
      inWorld(async ({ quotas, elsewhere }) => {
        const answers = await Promise.all(
          Array.from({ length: 100 }, (_, n) =>
            (n % 2 ? quotas : elsewhere).hold(n % 3 ? ADA : BOB, run(`${n}`), limits(10)),
          ),
        );
        expect(answers.filter((answer) => answer === "new")).toHaveLength(10);
      }));

    test.each(NEIGHBOURS)("is its owner's alone: %s", (_, owner, neighbour) =>
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

  describe("a reservation", () => {
    let ids = 0;
    const reserve = async (
      quotas: QuotaStore,
      tokens: number,
      tenant: Budget,
      { owner = ADA, user = {}, ms = HOUR, cost = 0 } = {},
    ) => {
      const id = `call-${ids++}`;
      const reply = await quotas.reserve(
        owner,
        { id, amounts: amounts(tokens, cost), ms },
        budgets(tenant, user),
      );
      return { id, ...reply };
    };

    test("is granted while something is left, and counts until it is settled", () =>
      inWorld(async ({ quotas, elsewhere }) => {
        const limit = { tokens_per_day: 1000 };
        const first = await reserve(quotas, 600, limit);
        const second = await reserve(elsewhere, 600, limit);
        const third = await reserve(quotas, 1, limit);
        expect([first.isGranted, second.isGranted, third.isGranted]).toEqual([true, true, false]);
        expect(third.accounts).toMatchObject({
          tenant: { day: amounts(0), reserved: amounts(1200) },
          user: { month: amounts(0), reserved: amounts(1200) },
        });
        await quotas.settle(ADA, first.id, spending());
        await elsewhere.settle(ADA, second.id, undefined);
        expect(await quotas.accounts(ADA)).toEqual({
          now: START,
          tenant: { day: amounts(100, 7), month: amounts(100, 7), reserved: amounts(0) },
          user: { day: amounts(100, 7), month: amounts(100, 7), reserved: amounts(0) },
        });
        expect((await reserve(quotas, 1, limit)).isGranted).toBe(true);
      }));

    test("of a hundred at once goes past the budget by one call at most", () =>
      inWorld(async ({ quotas, elsewhere }) => {
        const limit = { tokens_per_day: 1050 };
        const answers = await Promise.all(
          Array.from({ length: 100 }, (_, n) =>
            reserve(n % 2 ? quotas : elsewhere, 100, limit, { owner: n % 3 ? ADA : BOB }),
          ),
        );
        const granted = answers.filter(({ isGranted }) => isGranted);
        expect(granted).toHaveLength(11);
        await Promise.all(
          answers.map(({ id, isGranted }, n) =>
            isGranted ? quotas.settle(n % 3 ? ADA : BOB, id, spending()) : undefined,
          ),
        );
        const { tenant } = await elsewhere.accounts(BOB);
        expect(tenant.day.tokens).toBe(1100);
        expect(tenant.reserved).toEqual(amounts(0));
        expect((await reserve(quotas, 100, limit)).isGranted).toBe(false);
      }));

    test.each([
      ["tokens_per_day", 100],
      ["tokens_per_month", 100],
      ["cost_per_day", 7],
      ["cost_per_month", 7],
    ] as const)("is held against %s, of the tenant and of the user", (limit, spent) =>
      inWorld(async ({ quotas }) => {
        await quotas.settle(ADA, "before", spending());
        const granted = async (most: number, level: "tenant" | "user", owner = ADA) => {
          const [tenant, user] = level === "tenant" ? [{ [limit]: most }, {}] : [{}, { [limit]: most }];
          const { id, isGranted } = await reserve(quotas, 1, tenant, { user, owner, cost: 1 });
          await quotas.settle(owner, id, undefined);
          return isGranted;
        };
        expect(await granted(spent, "tenant")).toBe(false);
        expect(await granted(spent, "user")).toBe(false);
        expect(await granted(spent + 1, "tenant")).toBe(true);
        expect(await granted(spent + 1, "user")).toBe(true);
        expect(await granted(spent, "tenant", BOB)).toBe(false);
        expect(await granted(spent, "user", BOB)).toBe(true);
        expect(await granted(spent, "tenant", CAROL)).toBe(true);
      }),
    );

    test("of a process that died is void after its time, and its settlement counts all the same", () =>
      inWorld(async ({ quotas, elsewhere, advance }) => {
        const limit = { tokens_per_day: 100 };
        const { id } = await reserve(quotas, 100, limit, { ms: 1000, cost: 3 });
        advance(999);
        expect((await reserve(elsewhere, 1, limit)).isGranted).toBe(false);
        advance(1);
        expect((await elsewhere.accounts(ADA)).user.reserved).toEqual(amounts(0));
        expect((await reserve(elsewhere, 1, limit)).isGranted).toBe(true);
        await quotas.settle(ADA, id, spending());
        expect((await quotas.accounts(ADA)).user).toMatchObject({
          day: amounts(100, 7),
          reserved: amounts(1),
        });
      }));

    test("that is made before midnight is settled in the day after", () =>
      inWorld(async ({ quotas, advance }) => {
        const { id } = await reserve(quotas, 50, { tokens_per_day: 100 });
        advance(2);
        await quotas.settle(ADA, id, spending());
        expect(await quotas.usage(ADA, 2)).toMatchObject([{ day: "2026-11-22", calls: 1 }]);
      }, Date.parse("2026-11-21T23:59:59.999Z")));
  });

  describe("what was used", () => {
    const spentAt = async ({ quotas, setTime }: QuotaWorld, at: string, later: string) => {
      setTime(Date.parse(at));
      await quotas.settle(ADA, "x", spending());
      setTime(Date.parse(later));
      const { tenant, user } = await quotas.accounts(ADA);
      expect(tenant).toEqual(user);
      return [user.day.tokens, user.month.tokens];
    };

    test.each([
      ["within a day", "2026-11-22T00:00:00.000Z", "2026-11-22T23:59:59.999Z", [100, 100]],
      ["at midnight", "2026-11-22T23:59:59.999Z", "2026-11-23T00:00:00.000Z", [0, 100]],
      ["at the end of a month", "2026-11-30T23:59:59.999Z", "2026-12-01T00:00:00.000Z", [0, 0]],
      ["at the end of a year", "2026-12-31T23:59:59.999Z", "2027-01-01T00:00:00.000Z", [0, 0]],
      ["on a leap day", "2028-02-28T23:59:59.999Z", "2028-02-29T00:00:00.000Z", [0, 100]],
      ["after a leap day", "2028-02-29T12:00:00.000Z", "2028-03-01T00:00:00.000Z", [0, 0]],
      ["after February", "2027-02-28T12:00:00.000Z", "2027-03-01T00:00:00.000Z", [0, 0]],
      ["on the same day a year later", "2026-11-22T12:00:00.000Z", "2027-11-22T12:00:00.000Z", [0, 0]],
    ])("is counted by days and months of UTC: %s", (_, at, later, expected) =>
      inWorld(async (world) => {
        expect(await spentAt(world, at, later)).toEqual(expected);
      }),
    );

    test("every day has its own name", () =>
      inWorld(async ({ quotas, setTime }) => {
        // Through a century's end that has no leap day, and an ordinary one.
        for (const start of ["2099-12-01T05:00:00.000Z", "2100-02-20T05:00:00.000Z"]) {
          for (let day = 0; day < 40; day++) {
            const time = Date.parse(start) + day * DAY;
            setTime(time);
            await quotas.settle(ADA, "x", spending());
            expect((await quotas.usage(ADA, 1)).map((row) => row.day)).toEqual([
              new Date(time).toISOString().slice(0, 10),
            ]);
          }
        }
      }));

    test("is told by day, agent and model, the newest day first, to its own user", () =>
      inWorld(async ({ quotas, elsewhere, advance }) => {
        const odd = 'a "b" \\ ü';
        await quotas.settle(ADA, "1", spending({ agent: odd }));
        await quotas.settle(ADA, "2", spending({ model: "m:2" }));
        advance(DAY);
        await elsewhere.settle(ADA, "3", spending());
        await quotas.settle(ADA, "4", spending({ cost: 10 ** 15 }));
        await quotas.settle(BOB, "5", spending());
        const one = { ...spending().usage, cost: 7, calls: 1 };
        expect(await elsewhere.usage(ADA, 2)).toEqual([
          {
            ...{ day: "2026-11-22", agent: "helper", model: "scripted:test", calls: 2, cost: 10 ** 15 + 7 },
            ...{ input_tokens: 120, output_tokens: 80, cache_read_tokens: 20, cache_write_tokens: 10 },
          },
          { ...one, day: "2026-11-21", agent: odd, model: "scripted:test" },
          { ...one, day: "2026-11-21", agent: "helper", model: "m:2" },
        ]);
        expect(await quotas.usage(ADA, 1)).toHaveLength(1);
        expect(await quotas.usage(CAROL, 100)).toEqual([]);
      }));

    test("is kept for a hundred days", () =>
      inWorld(async ({ quotas, advance }) => {
        await quotas.settle(ADA, "1", spending());
        advance((USAGE_DAYS - 1) * DAY);
        await quotas.settle(ADA, "2", spending());
        expect(await quotas.usage(ADA, 1000)).toHaveLength(2);
        advance(DAY);
        await quotas.settle(ADA, "3", spending());
        expect((await quotas.usage(ADA, 1000)).map(({ day }) => day)).toEqual(["2027-03-01", "2027-02-28"]);
      }));

    test("does not grow with the names that are given, and nothing of it is lost", () =>
      inWorld(async ({ quotas, advance }) => {
        for (let n = 0; n < MAX_ROWS + 10; n++) await quotas.settle(ADA, "x", spending({ model: `m:${n}` }));
        await quotas.settle(ADA, "x", spending({ model: "m:0" }));
        const rows = await quotas.usage(ADA, 1);
        expect(rows).toHaveLength(MAX_ROWS + 1);
        expect(rows.find(({ model }) => model === "m:0")?.calls).toBe(2);
        expect(rows.find(({ agent }) => agent === OTHER)).toMatchObject({ model: OTHER, calls: 10 });
        advance(DAY);
        await quotas.settle(ADA, "x", spending({ model: "m:100" }));
        expect(await quotas.usage(ADA, 1)).toMatchObject([{ model: "m:100" }]);
      }));

    test("is counted of many calls that end at once", () =>
      inWorld(async ({ quotas, elsewhere }) => {
        await Promise.all(
          Array.from({ length: 100 }, (_, n) =>
            (n % 2 ? quotas : elsewhere).settle(
              ADA,
              `${n}`,
              spending({ usage: { ...NO_USAGE, output_tokens: n } }),
            ),
          ),
        );
        expect((await quotas.accounts(ADA)).tenant.month).toEqual(amounts(4950, 700));
        expect(await quotas.usage(ADA, 1)).toMatchObject([{ calls: 100, output_tokens: 4950 }]);
      }));
  });
}
