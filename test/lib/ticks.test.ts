import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { freeTick, mapInTicks, ownTick, sharedTick } from "../../src/lib/ticks.ts";
import { keepBusy } from "../support/busy.ts";

/** Notes each of `waits` when it is over, and every tick of the event loop until then. */
async function orderOf(waits: Readonly<Record<string, Promise<void>>>): Promise<string[][]> {
  const turns: string[][] = [[]];
  let left = Object.keys(waits).length;
  for (const [name, wait] of Object.entries(waits))
    void wait.then(() => {
      turns.at(-1)?.push(name);
      left--;
    });
  while (left > 0) {
    await turn();
    if (left > 0) turns.push([]);
  }
  return turns.filter((names) => names.length > 0);
}

describe("long pieces of work", () => {
  test("each have a tick of the event loop", async () => {
    const waits = { first: ownTick("acme"), second: ownTick("acme"), third: freeTick("acme") };
    expect(await orderOf(waits)).toEqual([["first"], ["second"], ["third"]]);
  });

  test("of one tenant, however many, let another tenant's come next", async () => {
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`many${at}`, ownTick("many")]));
    const order = (await orderOf({ ...many, few: ownTick("few") })).flat();
    expect(order.indexOf("few")).toBeLessThanOrEqual(1);
    expect(order).toHaveLength(51);
  });

  test("in sequence share a turn until it has lasted too long", async () => {
    await turn();
    let turns = 0;
    void turn().then(() => turns++);
    await sharedTick("acme");
    expect(turns).toBe(0);
    keepBusy();
    await sharedTick("acme");
    expect(turns).toBe(1);
  });

  test("on each entry of a list yield to other work and keep the order", async () => {
    await turn();
    let turns = 0;
    void turn().then(() => turns++);
    const work = (entry: string, index: number) => {
      keepBusy();
      return entry + index;
    };
    expect(await mapInTicks("acme", ["a", "b", "c"], work)).toEqual(["a0", "b1", "c2"]);
    expect(turns).toBe(1);
  });

  test("on their own do not wait", async () => {
    // Those of other tests are over.
    await turn();
    await turn();
    let isWaiting = true;
    void turn().then(() => (isWaiting = false));
    await freeTick("acme");
    expect(isWaiting).toBe(true);
  });
});
