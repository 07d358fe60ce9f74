// Holds for runs, streams and threads. They are acquired before work starts and refreshed while it continues.

import { hasCode } from "../../agent/core/errors.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { ExpectedRun } from "./expected-calls.ts";
import { KEPT_MS, type Quotas } from "./index.ts";
import type { Resource } from "./store.ts";

export interface HeldResource {
  readonly owner: Owner;
  readonly thing: Resource;
  readonly id: string;
}

/**
 * Counts a thread that `work` creates, and stops counting it if `work` throws. If the process dies before `work` ends,
 * the thread counts for `MAKING_MS`. Throws `limit_exceeded` and the errors of `work`.
 */
export async function withHold<T>(
  quotas: Quotas,
  { owner, id }: Pick<HeldResource, "owner" | "id">,
  work: () => Promise<T>,
): Promise<T> {
  const isNew = await quotas.acquire(owner, "threads", id);
  const isMade = (is: boolean) => isNew && settleThread(quotas, { owner, id }, is);
  try {
    const made = await work();
    await isMade(true);
    return made;
  } catch (error) {
    await isMade(hasCode(error, "already_exists"));
    throw error;
  }
}

/** Never throws. If it fails, the thread counts for `MAKING_MS`. */
async function settleThread(
  quotas: Quotas,
  { owner, id }: Pick<HeldResource, "owner" | "id">,
  isMade: boolean,
): Promise<void> {
  await (isMade ? quotas.refresh(owner, "threads", id) : quotas.withdraw(owner, "threads", id)).catch(
    () => {},
  );
}

/** The resources that a run needs, by id. */
export interface AdmissionRequest {
  /** Also requires enough tokens and money for the model call in `expected`. */
  readonly run?: string;
  readonly expected?: ExpectedRun;
  readonly thread?: string;
  /** Returns true if the thread exists. An existing thread counts even beyond the limit. */
  isThreadKnown?(): Promise<boolean>;
  readonly stream?: string | undefined;
}

/** No method throws. A resource that cannot be released counts until its hold expires. */
export interface Admission {
  /** Call this once the thread exists. The thread then counts until it is deleted. */
  keepThread(): Promise<void>;
  /** Releases every resource that this admission acquired, except a thread that already exists. */
  release(): Promise<void>;
  releaseRun(): Promise<void>;
}

/**
 * Acquires all resources in parallel. If one is refused, throws `limit_exceeded` and acquires none. Runs and streams
 * have separate ids.
 */
export async function admit(quotas: Quotas, owner: Owner, request: AdmissionRequest): Promise<Admission> {
  const { run, expected, thread, stream, isThreadKnown = async () => false } = request;
  const added: ["runs" | "streams", string][] = [];
  let made: string | undefined;
  const hold = async (thing: "runs" | "streams", id: string | undefined) => {
    if (id === undefined) return;
    await quotas.acquire(owner, thing, id);
    added.push([thing, id]);
  };
  const holdThread = async () => {
    if (thread === undefined) return;
    const isNew = await quotas.acquire(owner, "threads", thread).catch(async (error: unknown) => {
      if (!hasCode(error, "limit_exceeded") || !(await isThreadKnown())) throw error;
      await quotas.refresh(owner, "threads", thread);
      return false;
    });
    if (isNew) made = thread;
  };
  const settle = async (isMade: () => Promise<boolean>) => {
    const id = made;
    made = undefined;
    if (id !== undefined) await settleThread(quotas, { owner, id }, await isMade().catch(() => true));
  };
  const releaseAll = async (held: readonly ["runs" | "streams", string][]) => {
    await Promise.allSettled(held.map(([thing, id]) => quotas.release(owner, thing, id)));
  };
  const release = async () => {
    await Promise.all([releaseAll(added), settle(isThreadKnown)]);
  };
  const answers = await Promise.allSettled([
    hold("streams", stream),
    run === undefined ? undefined : quotas.assertFunds(owner, expected),
    hold("runs", run),
    holdThread(),
  ]);
  const refused = answers.find((answer) => answer.status === "rejected");
  if (refused) {
    await release();
    throw refused.reason;
  }
  return {
    keepThread: () => settle(async () => true),
    release,
    releaseRun: () => releaseAll(added.filter(([thing]) => thing === "runs")),
  };
}

/** Both methods are idempotent and never throw. */
export interface Hold {
  release(): Promise<void>;
  /** Stops refreshing. The resource counts until its hold expires, or until another process takes over and ends it. */
  leave(): void;
}

/** The hold of a resource without limits. */
const UNCOUNTED: Hold = { release: async () => {}, leave() {} };

/** Counts a resource, even beyond the limits, until it is released or this process dies. */
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
