// How what quotas hold (runs, streams, threads) is made, and goes on counting while it is at work.

import { hasCode } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import { KEPT_MS, type Quotas } from "./index.ts";
import type { Thing } from "./store.ts";

export interface HeldThing {
  readonly owner: Owner;
  readonly thing: Thing;
  readonly id: string;
}

/**
 * Makes one more of a thing if there may be one: it counts from before `work` on, and no longer when that throws. Throws
 * `limit_exceeded`, and what `work` throws.
 */
export async function admitted<T>(
  quotas: Quotas,
  { owner, thing, id }: HeldThing,
  work: () => Promise<T>,
): Promise<T> {
  const isNew = await quotas.hold(owner, thing, id);
  try {
    return await work();
  } catch (error) {
    // Where that fails, its time will be over.
    if (isNew) await quotas.release(owner, thing, id).catch(() => {});
    throw error;
  }
}

/** A thread that is worked on: one more, or one that `exists`. Throws `limit_exceeded`. */
export async function holdThread(
  quotas: Quotas,
  owner: Owner,
  { id, exists }: { id: string; exists: () => Promise<boolean> },
): Promise<void> {
  try {
    await quotas.hold(owner, "threads", id);
  } catch (error) {
    if (!hasCode(error, "limit_exceeded") || !(await exists())) throw error;
    await quotas.keep(owner, "threads", id);
  }
}

/** Either may be called again, and neither throws. */
export interface Kept {
  /** It counts no longer. */
  release(): Promise<void>;
  /** Nothing is done for it any more: it counts until its time is over, or whoever goes on with it has ended. */
  leave(): void;
}

/** What is at work counts until it is released, whatever the limits, or until this process has died. */
export function keep(quotas: Quotas, { owner, thing, id }: HeldThing): Kept {
  const again = () => quotas.keep(owner, thing, id).catch(() => {});
  let last = again();
  const timer = setInterval(() => {
    last = again();
  }, KEPT_MS / 3).unref();
  return {
    async release() {
      clearInterval(timer);
      await last;
      await quotas.release(owner, thing, id).catch(() => {});
    },
    leave: () => clearInterval(timer),
  };
}
