// Runs that kill their process, and innocent ones beside them, in two processes whose runs are at work in any order.

import fc from "fast-check";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Claim } from "../../../src/agent/core/stores.ts";
import { ActiveRuns } from "../../../src/engine/runs/active-runs.ts";
import type { AllStores } from "../../../src/engine/stores/all-stores.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { SILENT } from "../../../src/lib/logger.ts";
import { ADA, claimed, done, inWorld, upTo } from "../stores/fixture.ts";

const LEASE_MS = 10_000;
const MAX_DEATHS = 5;
const THREADS = [...upTo(3).map((n) => `poison ${n}`), ...upTo(5).map((n) => `innocent ${n}`)];

/** A process: its runs, and what decides about those that it takes. A new one comes for each that dies. */
class Process {
  readonly #stores: AllStores;
  #runs: ActiveRuns;
  readonly #claims = new Map<Claim, ReturnType<ActiveRuns["add"]>>();

  constructor(stores: AllStores) {
    this.#stores = stores;
    this.#runs = new ActiveRuns({ stores, logger: SILENT });
  }

  take(claims: readonly Claim[]): void {
    for (const claim of claims) this.#claims.set(claim, this.#runs.add(claim));
  }

  async poll(): Promise<void> {
    this.take(await this.#stores.runs.claimAbandoned(100, [], this.#runs.mostDeaths));
  }

  /** Whether one of its runs has killed it. */
  dies(): boolean {
    if (![...this.#claims.keys()].some(({ run }) => run.thread_id.startsWith("poison"))) return false;
    this.#claims.clear();
    this.#runs = new ActiveRuns({ stores: this.#stores, logger: SILENT });
    return true;
  }

  /** A poisonous run kills it; else its first run ends. */
  async act(): Promise<void> {
    const [first] = this.#claims;
    if (!first || this.dies()) return;
    const [claim, active] = first;
    await this.#stores.events.append(claim.lease, [done()]);
    this.#claims.delete(claim);
    await this.#runs.remove(active);
  }

  async renew(): Promise<void> {
    await this.#runs.renewAll();
  }
}

const step = fc.record({
  by: fc.nat({ max: 1 }),
  what: fc.constantFrom("start", "poll", "act"),
});

test("three runs that kill their process fail after at most five deaths, and innocent runs next to them succeed", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 60 }),
      fc.shuffledSubarray(THREADS, { minLength: THREADS.length }),
      (steps, order) =>
        inWorld(
          async (options) => createMemoryStores(options),
          async ({ stores, advance }) => {
            const processes = [new Process(stores), new Process(stores)];
            const waiting = [...order];
            const start = async (by: Process) => {
              const thread = waiting.shift();
              if (thread !== undefined) by.take([await claimed(stores, thread)]);
            };
            const pass = async () => {
              advance(LEASE_MS / 2 + 1);
              for (const each of processes) await each.renew();
            };
            for (const { by, what } of steps) {
              const process = processes[by] ?? new Process(stores);
              if (what === "start") await start(process);
              if (what === "poll") await process.poll();
              if (what === "act") await process.act();
              if (what !== "start") await pass();
            }
            // Each of the 8 runs ends once, and three die five times.
            for (let round = 0; round < 40; round++) {
              for (const process of processes) {
                await start(process);
                await process.poll();
                await process.act();
                await pass();
              }
            }
            for (const thread of order) {
              const { items } = await stores.runs.list(ADA, thread, { limit: 1 });
              const isPoison = thread.startsWith("poison");
              expect([thread, items[0]?.status, items[0]?.error?.code]).toEqual(
                isPoison ? [thread, "error", "crashed_too_often"] : [thread, "success", undefined],
              );
              expect(items[0]?.attempt).toBeLessThanOrEqual(MAX_DEATHS);
            }
          },
        ),
    ),
    { numRuns: 200 },
  );
});

test("a long run does not fail because of a run that repeatedly kills their process", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  await inWorld(
    async (options) => createMemoryStores(options),
    async ({ stores, advance }) => {
      const process = new Process(stores);
      for (const thread of ["innocent", "poison"]) process.take([await claimed(stores, thread)]);
      const outcome = async (thread: string) =>
        (await stores.runs.list(ADA, thread, { limit: 1 })).items[0]?.error?.code;
      for (let rounds = 0; rounds < 20 && (await outcome("poison")) === undefined; rounds++) {
        advance(LEASE_MS + 1);
        await process.poll();
        if (process.dies()) continue;
        // The innocent run, which was first, lives through its trial.
        vi.advanceTimersByTime(121_000);
        await process.renew();
        advance(LEASE_MS / 4 + 1);
        await process.poll();
        process.dies();
      }
      expect(await outcome("poison")).toBe("crashed_too_often");
      await process.act();
      const { items } = await stores.runs.list(ADA, "innocent", { limit: 1 });
      expect(items[0]).toMatchObject({ status: "success" });
    },
  );
});
