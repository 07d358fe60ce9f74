// Threads for runs that were started without a thread and should not be kept. A document announces each thread before
// its run is accepted. If a process dies, another one finds the document and deletes the thread.

import {
  change,
  type Document,
  type DocumentChange,
  type Documents,
  newVersion,
  type OwnedCollection,
  remove,
} from "../../agent/core/documents.ts";
import { AppError, hasCode } from "../../agent/core/errors.ts";
import type { Stores } from "../../agent/core/stores.ts";
import type { Logger } from "../../lib/logger.ts";
import { mapInTicks } from "../../lib/ticks.ts";
import type { Owner } from "../../protocol/ids.ts";
import { createDueWorker, type DueWorker } from "../due-worker.ts";
import type { Quotas } from "../quotas/index.ts";
import { newestRun } from "../runs/control.ts";
import { deleteThreadTree } from "../runs/thread-actions.ts";
import { KEY_MS, nextStep, pauseOf, REPEAT_MS, TemporaryThread } from "./rules.ts";

export const TEMPORARY_THREADS = "temporary_threads";
const LEASE_MS = 60_000;
const POLL_MS = 5_000;
const AT_ONCE = 8;

export interface TemporaryThreads extends Pick<DueWorker, "open" | "close"> {
  /**
   * Must be called before the thread's run is accepted. Throws `events_expired` if the thread for this key was already
   * deleted, or `limit_exceeded` if the user has too many temporary threads.
   */
  announce(owner: Owner, thread_id: string, is_keyed: boolean): Promise<void>;
  /** Must be called if the run was refused. Never throws. */
  withdraw(owner: Owner, thread_id: string): Promise<void>;
  /**
   * Must be called after the client has read the run's whole answer. Deletes the thread unless its run is still active,
   * waits for an answer, or has a key that the client can use to retry. Never throws.
   */
  wasRead(owner: Owner, thread_id: string): Promise<void>;
}

export interface TemporaryThreadOptions {
  readonly stores: Pick<Stores, "threads" | "runs"> & { readonly documents: Documents };
  readonly quotas: Quotas;
  readonly logger: Logger;
  /** How long a thread stays readable after its run ends, in milliseconds. */
  readonly keepMs: number;
  /** The maximum number of temporary threads per user. */
  readonly most: number;
}

const collectionOf = ({ tenant, user }: Owner) => ({ kind: TEMPORARY_THREADS, tenant, user });

/** The caller must open and close it. */
export function createTemporaryThreads(options: TemporaryThreadOptions): TemporaryThreads {
  const { stores, logger, keepMs, most } = options;
  const { documents } = stores;
  const due = {
    kind: TEMPORARY_THREADS,
    leaseMs: LEASE_MS,
    everyMs: Math.min(POLL_MS, Math.max(keepMs, 100)),
    atOnce: AT_ONCE,
    work: (claimed: PlacedDocument) => review(options, claimed, keepMs),
  };
  const worker = createDueWorker(documents, due, logger);
  const reviews = new Set<Promise<void>>();

  return {
    open: worker.open,

    async close() {
      await Promise.all([worker.close(), ...reviews]);
    },

    async announce(owner, key, is_keyed) {
      const collection = collectionOf(owner);
      const announced = (count: number) =>
        announce(documents, {
          collection,
          key,
          is_keyed,
          keepMs,
          limit: { count, error: () => tooMany(most) },
        });
      try {
        await announced(most);
      } catch (error) {
        if (!hasCode(error, "limit_exceeded")) throw error;
        // Up to `most` remembered keys of deleted threads do not count towards the limit.
        const ended = Math.min(await countEnded(documents, collection), most);
        if (ended === 0) throw error;
        await announced(most + ended);
      }
    },

    withdraw: (owner, thread_id) =>
      quietly(logger, thread_id, async () => {
        await remove(documents, collectionOf(owner), thread_id);
      }),

    async wasRead(owner, thread_id) {
      const reviewing = quietly(logger, thread_id, async () => {
        const collection = collectionOf(owner);
        const [found] = (await documents.read(collection, [thread_id])).found;
        if (found && !temporaryIn(found).is_keyed) await review(options, { ...found, collection }, 0);
      });
      reviews.add(reviewing);
      await reviewing;
      reviews.delete(reviewing);
    },
  };
}

interface Announcement {
  readonly collection: OwnedCollection;
  readonly key: string;
  readonly is_keyed: boolean;
  readonly keepMs: number;
  readonly limit: NonNullable<DocumentChange["limit"]>;
}

const announce = (
  documents: Documents,
  { collection, key, is_keyed, keepMs, limit }: Announcement,
): Promise<void> =>
  change(documents, { collection, keys: [key], limit }, ({ found: [found], now }) => {
    const temporary = found ? temporaryIn(found) : ({ since: now, is_keyed, state: "live" } as const);
    if (temporary.state !== "live") throw isDeleted();
    // Prevents other processes from deleting the thread while a repeated request looks for its run.
    const due = now + (found ? Math.max(keepMs, REPEAT_MS) : keepMs);
    return {
      writes: [{ key, seen: found?.version, body: JSON.stringify(temporary), due }],
      result: undefined,
    };
  });

/** Counts the deleted threads whose keys are still remembered. */
async function countEnded(documents: Documents, collection: OwnedCollection): Promise<number> {
  const all = await documents.list(collection);
  const states = await mapInTicks(collection.tenant, all, (each) => temporaryIn(each).state);
  return states.filter((state) => state === "ended").length;
}

interface PlacedDocument extends Document {
  readonly collection: OwnedCollection;
}

const temporaryIn = ({ body }: Document): TemporaryThread => TemporaryThread.parse(JSON.parse(body));

/**
 * Deletes the thread if it no longer has to stay readable, or schedules the next check. Does nothing if the document
 * has changed in the meantime.
 */
async function review(
  options: TemporaryThreadOptions,
  placed: PlacedDocument,
  keepMs: number,
): Promise<void> {
  const { stores } = options;
  const { collection, key, version } = placed;
  const owner = { tenant: collection.tenant, user: collection.user ?? "" };
  const { found, now } = await stores.documents.read(collection, [key]);
  if (found[0]?.version !== version) return;
  const temporary = temporaryIn(placed);
  if (temporary.state !== "live") return end(options, owner, { ...placed, temporary }, now);
  const thread = await stores.threads.get(owner, key);
  const newest = thread && (await newestRun(stores.runs, owner, key));
  const step = nextStep({ temporary, status: thread?.status, newest }, keepMs, now);
  if (step.as === "delete") return end(options, owner, { ...placed, temporary }, now);
  await write(options, placed, step.as === "wait" ? { temporary, due: step.until } : undefined);
}

/**
 * Deletes the thread. If the run has a key, remembers it before the deletion, so a repeated request cannot start a run
 * on a thread that is being deleted.
 */
async function end(
  options: TemporaryThreadOptions,
  owner: Owner,
  { temporary, ...placed }: PlacedDocument & { readonly temporary: TemporaryThread },
  now: number,
): Promise<void> {
  const { stores, quotas, keepMs } = options;
  const { is_keyed } = temporary;
  let held: PlacedDocument | undefined = placed;
  if (is_keyed && temporary.state === "live")
    held = await write(options, placed, {
      temporary: { ...temporary, state: "ending" },
      due: now + LEASE_MS,
    });
  if (!held) return;
  try {
    await deleteThreadTree({ threads: stores.threads, quotas }, owner, placed.key);
  } catch (error) {
    if (!hasCode(error, "thread_busy")) throw error;
    await write(options, held, { temporary: { ...temporary, state: "live" }, due: now + pauseOf(keepMs) });
    return;
  }
  const isRemembered = is_keyed && temporary.state !== "ended";
  await write(
    options,
    held,
    isRemembered ? { temporary: { ...temporary, state: "ended" }, due: now + KEY_MS } : undefined,
  );
}

/**
 * Deletes the document if `next` is undefined. Returns undefined if the document was deleted or has changed in the
 * meantime.
 */
async function write(
  { stores: { documents } }: TemporaryThreadOptions,
  placed: PlacedDocument,
  next: { readonly temporary: TemporaryThread; readonly due: number } | undefined,
): Promise<PlacedDocument | undefined> {
  const { collection, key, version: seen } = placed;
  const version = newVersion();
  const body = next && JSON.stringify(next.temporary);
  const writes = [{ key, seen, body, due: next?.due ?? null }];
  const isWritten = (await documents.write(collection, writes, { version })) === "written";
  return isWritten ? { ...placed, body: body ?? "", version } : undefined;
}

async function quietly(logger: Logger, thread_id: string, work: () => Promise<void>): Promise<void> {
  await work().catch((err: unknown) =>
    logger.warn({ err, thread_id }, "a temporary thread could not be deleted yet; will retry later"),
  );
}

const isDeleted = () =>
  new AppError(
    "events_expired",
    "The run of this `Idempotency-Key` has ended, and its thread is deleted. Use another key to start another run.",
  );

const tooMany = (most: number) =>
  new AppError(
    "limit_exceeded",
    `You already have ${most} temporary threads. Wait until some of their runs have ended, or send \`keep_thread: true\`.`,
    { details: { of: "user", limit: "temporary_threads" } },
  );
