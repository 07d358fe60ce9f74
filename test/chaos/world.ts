// What those share who act in the suite.

import { setTimeout as sleep } from "node:timers/promises";
import type { Journal } from "./journal.ts";
import type { Random } from "./random.ts";
import type { Readers } from "./readers.ts";
import type { Replicas } from "./replicas.ts";

export interface World {
  readonly replicas: Replicas;
  readonly readers: Readers;
  readonly journal: Journal;
  /** Aborted when nothing new is to be begun. */
  readonly ending: AbortSignal;
  /** Aborted when nothing is waited for any more. */
  readonly over: AbortSignal;
}

/** Up to so long; less when `signal` aborts. */
export async function pause(random: Random, mostMs: number, signal: AbortSignal): Promise<void> {
  await sleep(random.int(0, mostMs), undefined, { signal }).catch(() => {});
}
