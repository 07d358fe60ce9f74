// Works on the documents of a kind as they become due. Any number of processes may do so at once: each document is claimed by one.

import { type ClaimedDocument, claimDue } from "../agent/core/document-claims.ts";
import { type Documents, MAX_PICKED } from "../agent/core/documents.ts";
import { atMostEvery } from "../lib/at-most-every.ts";
import type { Logger } from "../lib/logger.ts";

export interface DueWork {
  /** The kind of the documents. */
  readonly kind: string;
  /**
   * Works on a claimed document and ends its claim with `finish`. May be called again for the same document: after `leaseMs` when it has
   * not finished, or when its process dies. `signal` aborts when the worker closes. If it throws, the worker logs the cause as a warning,
   * and the document is due again once the lease ends.
   */
  work(claimed: ClaimedDocument, signal: AbortSignal): Promise<void>;
  /** Time for which a claim excludes other processes, in ms. */
  readonly leaseMs: number;
  /** Maximum time between the moment at which a document becomes due and its claim, in ms, while a place is free. */
  readonly everyMs: number;
  /** Maximum number of documents that this process works on at once. Others wait in the store, tenants in turn. */
  readonly atOnce: number;
}

export interface DueWorker {
  /** Begins to look for due documents. */
  open(): void;
  /** Looks for due documents now, for example because one was written that is due already. Returns at once. */
  wake(): void;
  /** Stops looking, aborts the work in progress and waits until it returns. */
  close(): Promise<void>;
}

/** How often a store that fails is logged, in ms. */
const COMPLAIN_MS = 60_000;

/** The caller opens and closes it. */
export function createDueWorker(documents: Documents, due: DueWork, logger: Logger): DueWorker {
  const { kind, leaseMs, everyMs, atOnce } = due;
  const closing = new AbortController();
  const active = new Set<Promise<void>>();
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;
  let isAskedAgain = false;
  const complain = atMostEvery(COMPLAIN_MS, (err: unknown, count) =>
    logger.warn({ err, kind, count }, "could not look for due documents"),
  );

  /** Claims as many documents as have a place. Returns whether the store may have more of them. */
  const claim = async (): Promise<boolean> => {
    const limit = Math.min(atOnce - active.size, MAX_PICKED);
    if (limit <= 0 || closing.signal.aborted) return false;
    const claims = await claimDue(documents, kind, { limit, leaseMs });
    for (const each of claims) begin(each);
    return claims.length === limit;
  };
  const begin = (claimed: ClaimedDocument) => {
    const working = due
      .work(claimed, closing.signal)
      .catch((err: unknown) => {
        if (!closing.signal.aborted) logFailure(logger, kind, claimed, err);
      })
      .finally(() => {
        // While every place is taken, the next document waits for this one.
        if (active.size === atOnce) wake();
        active.delete(working);
      });
    active.add(working);
  };
  const look = async () => {
    do {
      isAskedAgain = false;
      try {
        if (await claim()) isAskedAgain = true;
      } catch (error) {
        complain(error);
      }
    } while (isAskedAgain);
  };
  const wake = () => {
    isAskedAgain = true;
    looking ??= look().finally(() => {
      looking = undefined;
      if (isAskedAgain && !closing.signal.aborted) wake();
    });
  };

  return {
    open() {
      timer = setInterval(wake, everyMs).unref();
      wake();
    },
    wake,
    async close() {
      clearInterval(timer);
      closing.abort();
      await looking;
      await Promise.all(active);
    },
  };
}

function logFailure(logger: Logger, kind: string, { collection, key }: ClaimedDocument, err: unknown): void {
  logger.warn({ err, kind, tenant: collection.tenant, key }, "the work on a due document failed");
}
