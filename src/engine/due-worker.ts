// Processes documents of one kind as they become due. Any number of processes can run this worker; each document is
// claimed by one of them.

import { type ClaimedDocument, claimDue } from "../agent/core/document-claims.ts";
import { type Documents, MAX_PICKED } from "../agent/core/documents.ts";
import { atMostEvery } from "../lib/at-most-every.ts";
import type { Logger } from "../lib/logger.ts";

export interface DueWork {
  /** The kind of document to process. */
  readonly kind: string;
  /**
   * Processes a claimed document and ends its claim with `finish`. May be called again for the same document: after
   * `leaseMs` if it has not finished, or if its process dies. `signal` aborts when the worker closes. If it throws, the
   * worker logs a warning with the cause, and the document is due again once the lease ends.
   */
  work(claimed: ClaimedDocument, signal: AbortSignal): Promise<void>;
  /** The number of milliseconds for which a claim excludes other processes. */
  readonly leaseMs: number;
  /** The maximum number of milliseconds between a document's due time and its claim, when this process has capacity. */
  readonly everyMs: number;
  /** Has the same meaning as in `claimDue`. Leave it out for documents that can be due at any time. */
  readonly aheadMs?: number;
  /**
   * The maximum number of documents that this process works on at once. The rest wait in the store, and tenants take
   * turns.
   */
  readonly atOnce: number;
}

export interface DueWorker {
  /** Starts looking for due documents. */
  open(): void;
  /** Looks for due documents now, for example after writing a document that is already due. Returns at once. */
  wake(): void;
  /** Stops looking, aborts the work in progress and waits until it returns. */
  close(): Promise<void>;
}

/** The number of milliseconds between two log lines about a failing store. */
const COMPLAIN_MS = 60_000;

/** The caller must open and close the worker. */
export function createDueWorker(documents: Documents, due: DueWork, logger: Logger): DueWorker {
  const { kind, leaseMs, everyMs, atOnce, aheadMs } = due;
  const closing = new AbortController();
  const active = new Set<Promise<void>>();
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;
  let isAskedAgain = false;
  const complain = atMostEvery(COMPLAIN_MS, (err: unknown, count) =>
    logger.warn({ err, kind, count }, "could not check for due documents"),
  );

  /** Claims as many documents as this process has capacity for. Returns true if the store may have more. */
  const claim = async (): Promise<boolean> => {
    const limit = Math.min(atOnce - active.size, MAX_PICKED);
    if (limit <= 0 || closing.signal.aborted) return false;
    const claims = await claimDue(documents, kind, { limit, leaseMs, aheadMs });
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
        active.delete(working);
        // All places were taken until now, so the next document may have waited for this place.
        if (active.size === atOnce - 1) wake();
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
  logger.warn({ err, kind, tenant: collection.tenant, key }, "could not process a due document");
}
