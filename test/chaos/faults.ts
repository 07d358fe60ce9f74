// What befalls the servers, their store and their readers.

import { setTimeout as sleep } from "node:timers/promises";
import type { SharedStore } from "../support/shared-stores.ts";
import type { Random } from "./random.ts";
import { pause, type World } from "./world.ts";

/** Each with its share. */
const SHARES = {
  kill: 4,
  stop: 3,
  drain: 3,
  "store-restart": 1,
  "store-pause": 1,
  "store-cut": 2,
  disconnect: 4,
} as const;
export type Fault = keyof typeof SHARES;
// The keys of a literal.
export const FAULTS = Object.keys(SHARES) as readonly Fault[];

const LONGEST_PAUSE_MS = 2_000;
/** After this much time without trouble, servers have no excuse. */
const CALM_MS = 12_000;

export interface FaultOptions {
  readonly faults: readonly Fault[];
  /** Absent when the servers have none. */
  readonly shared: SharedStore | undefined;
  readonly leaseMs: number;
  /** Longest time between two of them. Default: 2 s. */
  readonly pauseMs?: number;
  /** One of each kind is tried, even if a busy machine needs more time for that. */
  readonly isComplete?: boolean;
}

/**
 * First one of each kind, then random ones. Resolves when `world.ending` has aborted, if `isComplete` after one of each kind, and everything
 * works again.
 */
export async function strike(random: Random, options: FaultOptions, world: World): Promise<void> {
  const weighted = options.faults.flatMap((fault) => Array.from({ length: SHARES[fault] }, () => fault));
  const first = random.shuffle(options.faults);
  const underWay = new Set<Promise<void>>();
  while (weighted.length > 0) {
    await pause(random, options.pauseMs ?? LONGEST_PAUSE_MS, world.ending);
    if (world.ending.aborted && !(options.isComplete && first.length > 0)) break;
    const fault = first.pop() ?? random.pick(weighted);
    const striking = befall(fault, random, options, world).finally(() => underWay.delete(striking));
    underWay.add(striking);
    // Without pauses they would prevent each other.
    if (world.ending.aborted) await striking;
  }
  await Promise.all(underWay);
}

async function befall(fault: Fault, random: Random, options: FaultOptions, world: World): Promise<void> {
  const { replicas, readers, journal } = world;
  const { shared, leaseMs } = options;
  switch (fault) {
    case "disconnect":
      return readers.disconnect(random, random.pick([0.1, 0.3, 1]));
    case "store-restart":
    case "store-pause":
      if (shared && isOver(world)) await outage(fault, shared, random.int(100, 2_500), world);
      return;
    case "store-cut":
      if (!shared || !isOver(world)) return;
      journal.count("connections of the store cut");
      journal.note(fault);
      journal.cuts.push(Date.now());
      return shared.cut(random.pick(["messages", "commands"] as const));
    default: {
      const { up, urls } = replicas;
      const [longest, wait] = [random.int(500, 3_000), random.int(0, 1_500)];
      // The last one is left in peace, unless there never were more.
      if (up.length === 0 || (up.length === 1 && urls.length > 1)) return;
      const replica = random.pick(up);
      if (fault === "kill") return replicas.kill(replica, wait);
      if (fault === "stop") return replicas.stop(replica, leaseMs + longest);
      return replicas.drain(replica);
    }
  }
}

async function outage(
  fault: "store-restart" | "store-pause",
  shared: SharedStore,
  forMs: number,
  { journal }: World,
): Promise<void> {
  const [begin, end] =
    fault === "store-restart" ? [shared.kill, shared.start] : [shared.pause, shared.resume];
  const entry = { from: Date.now(), to: Number.POSITIVE_INFINITY };
  journal.outages.push(entry);
  journal.count(fault === "store-restart" ? "restarts of the store" : "pauses of the store");
  journal.note(fault);
  await begin();
  await sleep(forMs);
  await end();
  entry.to = Date.now();
  journal.note("the store is back");
}

/** Whether the store is there. */
const isOver = ({ journal }: World) => (journal.outages.at(-1)?.to ?? 0) < Date.now();

export const isCalm = ({ journal }: Pick<World, "journal">) =>
  (journal.outages.at(-1)?.to ?? 0) < Date.now() - CALM_MS;
