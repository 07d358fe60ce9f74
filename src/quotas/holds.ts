// Holds of runs, streams and threads: acquires them before work and refreshes them during it.

import { hasCode } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import { KEPT_MS, type Quotas } from "./index.ts";
import type { Resource } from "./store.ts";

export interface HeldResource {
  readonly owner: Owner;
  readonly thing: Resource;
  readonly id: string;
}

export interface MadeResource extends HeldResource {
  /** How long it counts while it is made, in ms. Default: as long as when it is there. */
  readonly makingMs?: number;
}

/**
 * Acquires the resource, runs `work`, and releases the resource again if `work` throws. Throws `limit_exceeded`, and what
 * `work` throws.
 */
export async function withHold<T>(
  quotas: Quotas,
  { owner, thing, id, makingMs }: MadeResource,
  work: () => Promise<T>,
): Promise<T> {
  const isNew = await quotas.acquire(owner, thing, id, makingMs);
  const keep = async () => {
    if (makingMs !== undefined) await quotas.refresh(owner, thing, id);
  };
  try {
    const made = await work();
    await keep().catch(() => {});
    return made;
  } catch (error) {
    // If that fails, the hold expires.
    await (isNew ? quotas.release(owner, thing, id) : keep()).catch(() => {});
    throw error;
  }
}

/** The resources that a run needs, by id. */
export interface Wanted {
  /** Also requires tokens and money to be left. */
  readonly run?: string;
  readonly thread?: string;
  /** Whether the thread exists: an existing thread counts even beyond the limit. */
  isThreadKnown?(): Promise<boolean>;
  readonly stream?: string | undefined;
}

/** Neither method throws: a resource that cannot be released counts until its hold expires. */
export interface Admission {
  /** Releases every resource that this admission acquired. */
  release(): Promise<void>;
  releaseRun(): Promise<void>;
}

/** Acquires all resources in parallel, or throws `limit_exceeded` and acquires none. */
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

/** Both methods are idempotent, and neither throws. */
export interface Hold {
  release(): Promise<void>;
  /** Stops refreshing: the resource counts until its hold expires, or another process takes it over and ends. */
  leave(): void;
}

/** Of what nothing limits. */
const UNCOUNTED: Hold = { release: async () => {}, leave() {} };

/** Keeps a resource counting, even beyond the limits, until it is released or this process dies. */
export function holdWhile(quotas: Quotas, { owner, thing, id }: HeldResource): Hold {
  if (!quotas.counts(thing)) return UNCOUNTED;
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
