// What schedules promise on every store: a slot has one run over several processes, and tenants have their turns.

import { describe, expect, onTestFinished, test } from "vitest";
import { createSchedules } from "../../src/engine/schedules/index.ts";
import { ScheduleSpec } from "../../src/engine/schedules/schedule.ts";
import type { AllStores } from "../../src/engine/stores/all-stores.ts";
import { SILENT } from "../../src/lib/logger.ts";
import { managed } from "../engine/runs/managed.ts";
import { ADA, BOB, inWorld, type Open } from "../engine/stores/fixture.ts";

const NEIGHBOUR = { tenant: "neighbour", user: "ada" };
const MINUTE = 60_000;
/** Maximum number of schedules that a process claims first. */
const AT_ONCE = 16;

/** Schedules of a process. `started` gets the threads of their runs in the order in which they are started. */
async function processOn(stores: AllStores, started: string[] = []) {
  const { runs } = managed(stores);
  await runs.open();
  const schedules = createSchedules({
    ...{ documents: stores.documents, runs, logger: SILENT, perUser: 100, everyMs: 20 },
    endOfKey: async () => undefined,
    announce: async ({ tenant }, thread) => void started.push(`${tenant} ${thread}`),
  });
  onTestFinished(() => schedules.close());
  return schedules;
}

export function schedulesContract(open: Open): void {
  describe("schedules", () => {
    const spec = (at: string) => ScheduleSpec.parse({ at, input: "go", keep_thread: false });
    const timeIn = async ({ documents }: AllStores, ms: number) => {
      const { now } = await documents.read({ kind: "schedules", ...ADA }, ["none"]);
      return new Date(now + ms).toISOString();
    };

    test("start one run per slot across three processes, and none for a deleted user", () =>
      inWorld(open, async ({ stores, advance }) => {
        const started: string[] = [];
        const processes = await Promise.all([1, 2, 3].map(() => processOn(stores, started)));
        const [first] = processes as [(typeof processes)[number]];
        const at = await timeIn(stores, MINUTE);
        for (const owner of [ADA, BOB])
          for (let n = 0; n < 20; n++) await first.put(owner, `s${n}`, spec(at));
        expect(await first.deleteAll(BOB)).toBe(20);
        advance(MINUTE);
        for (const each of processes) each.open();
        const left = async () => {
          const { items } = await first.list(ADA, { limit: 100 });
          return items.filter(({ status }) => status === "active").length;
        };
        await expect.poll(left, { timeout: 60_000 }).toBe(0);
        await Promise.all(processes.map((each) => each.close()));
        const { items } = await stores.threads.list(ADA, { limit: 100 });
        const runs = await Promise.all(items.map(({ id }) => stores.runs.list(ADA, id, { limit: 10 })));
        expect(runs.map((each) => each.items.length)).toEqual(Array(20).fill(1));
        expect((await stores.threads.list(BOB, { limit: 10 })).items).toEqual([]);
      }));

    test("let a neighbour have its turn while many of one tenant are due", () =>
      inWorld(open, async ({ stores, advance }) => {
        const started: string[] = [];
        const schedules = await processOn(stores, started);
        const [early, late] = [await timeIn(stores, MINUTE), await timeIn(stores, 2 * MINUTE)];
        for (let n = 0; n < 60; n++) await schedules.put(ADA, `s${n}`, spec(early));
        await schedules.put(NEIGHBOUR, "only", spec(late));
        advance(2 * MINUTE);
        schedules.open();
        await expect.poll(() => started.length, { timeout: 60_000 }).toBe(61);
        await schedules.close();
        const place = started.findIndex((each) => each.startsWith(NEIGHBOUR.tenant));
        expect(place).toBeLessThan(AT_ONCE);
      }));
  });
}
