// How what quotas hold (runs, streams, threads) is made, and goes on counting while it is at work.

import { hasCode } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import { KEPT_MS, type Quotas } from "./index.ts";
import type { Resource } from "./store.ts";

export interface HeldResource {
  readonly owner: Owner;
  readonly thing: Resource;
  readonly id: string;
}

/**
 * Makes one more of a thing if there may be one: it counts from before `work` on, and no longer when that throws. Throws
 * `limit_exceeded`, and what `work` throws.
 */
export async function withHold<T>(
  quotas: Quotas,
  { owner, thing, id }: HeldResource,
  work: () => Promise<T>,
): Promise<T> {
  const isNew = await quotas.acquire(owner, thing, id);
  try {
    return await work();
  } catch (error) {
    // Where that fails, its time will be over.
    if (isNew) await quotas.release(owner, thing, id).catch(() => {});
    throw error;
  }
}

/** What a run needs of its owner's quotas: ids of things that shall count. */
export interface Wanted {
  /** Also needs tokens and money to be left. */
  readonly run?: string;
  readonly thread?: string;
  /** Whether the thread exists; a thread that exists counts, whatever the limit. */
  isThreadKnown?(): Promise<boolean>;
  readonly stream?: string | undefined;
}

/** Neither method throws: what cannot be released counts until its time is over. */
export interface Admission {
  /** Releases everything that did not count before. */
  release(): Promise<void>;
  releaseRun(): Promise<void>;
}

/** Takes all of what a run needs, or throws `limit_exceeded` and takes nothing. Asks the store everything at once. */
export async function admit(quotas: Quotas, owner: Owner, wanted: Wanted): Promise<Admission> {
  const { run, thread, stream, isThreadKnown = async () => false } = wanted;
  const added: [Resource, string][] = [];
  const hold = async (thing: Resource, id: string | undefined) => {
    if (id !== undefined && (await quotas.acquire(owner, thing, id))) added.push([thing, id]);
  };
  const release = async (held: readonly [Resource, string][]) => {
    await Promise.allSettled(held.map(([thing, id]) => quotas.release(owner, thing, id)));
  };
  const holdThread = () =>
    hold("threads", thread).catch(async (error: unknown) => {
      if (!thread || !hasCode(error, "limit_exceeded") || !(await isThreadKnown())) throw error;
      await quotas.refresh(owner, "threads", thread);
    });
  const answers = await Promise.allSettled([
    hold("streams", stream),
    run === undefined ? undefined : quotas.assertFunds(owner),
    hold("runs", run),
    holdThread(),
  ]);
  const refused = answers.find((answer) => answer.status === "rejected");
  if (refused) {
    await release(added);
    throw refused.reason;
  }
  return {
    release: () => release(added),
    releaseRun: () => release(added.filter(([thing]) => thing === "runs")),
  };
}

/** Either may be called again, and neither throws. */
export interface Hold {
  /** It counts no longer. */
  release(): Promise<void>;
  /** Nothing is done for it any more: it counts until its time is over, or whoever goes on with it has ended. */
  leave(): void;
}

/** What is at work counts until it is released, whatever the limits, or until this process has died. */
export function holdWhile(quotas: Quotas, { owner, thing, id }: HeldResource): Hold {
  const again = () => quotas.refresh(owner, thing, id).catch(() => {});
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
