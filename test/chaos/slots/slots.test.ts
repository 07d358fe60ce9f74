// The short form of `npm run chaos:slots`, on one store. The long form runs each night on each.

import { afterAll, expect, test } from "vitest";
import { needing } from "../../support/needing.ts";
import { seedOr } from "../../support/seed.ts";
import { sharedPostgres } from "../../support/shared-stores.ts";
import { slotReport, slots } from "./slots.ts";

const SEED = String(seedOr(1));

const shared = await sharedPostgres();
afterAll(() => shared?.close());

needing(shared, "postgres").describe("three servers on one postgres", () => {
  test("start each slot of a schedule once while servers are killed and stopped, clocks jump and the store fails", async () => {
    if (!shared) throw new Error("There was a store a moment ago.");
    const outcome = await slots({ slots: 200, seconds: 8, seed: SEED, shared });
    expect(outcome.faults, slotReport(outcome)).toEqual([]);
    const times = (...what: string[]) => what.reduce((sum, each) => sum + (outcome.counts.get(each) ?? 0), 0);
    expect(times("slots of once: runs")).toBeGreaterThan(0);
    expect(times("slots of each: runs")).toBeGreaterThan(0);
    expect(times("kills", "stops", "drains")).toBeGreaterThan(0);
    expect(times("moves of the store's clock back")).toBeGreaterThan(0);
  }, 600_000);
});
