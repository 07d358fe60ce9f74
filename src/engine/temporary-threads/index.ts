// Threads of runs that were started without a thread and are not kept. Each is announced as a document before its run is accepted, so
// that a process that dies leaves no thread behind: any other process deletes it.

import {
  type Change,
  change,
  type Document,
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
   * To be called before the run of the thread is accepted. Throws `events_expired` for the thread of a key that is deleted already,
   * `limit_exceeded` when the user has too many.
   */
  announce(owner: Owner, thread_id: string, is_keyed: boolean): Promise<void>;
  /** To be called when the run was refused. Never throws. */
  withdraw(owner: Owner, thread_id: string): Promise<void>;
  /**
   * To be called when the client of the run has read its whole answer. Deletes the thread, unless its run is still at work, waits for
   * an answer, or has a key, with which its client may ask again. Never throws.
   */
  wasRead(owner: Owner, thread_id: string): Promise<void>;
}

export interface TemporaryThreadOptions {
  readonly stores: Pick<Stores, "threads" | "runs"> & { readonly documents: Documents };
  readonly quotas: Quotas;
  readonly logger: Logger;
  /** How long a thread stays readable once its run has ended, in ms. */
  readonly keepMs: number;
  /** Maximum number of a user's. */
  readonly most: number;
}

const collectionOf = ({ tenant, user }: Owner) => ({ kind: TEMPORARY_THREADS, tenant, user });

/** The caller opens and closes it. */
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
        // Keys of threads that are deleted leave room, as many as there may be threads.
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
  readonly limit: NonNullable<Change["limit"]>;
}

const announce = (
  documents: Documents,
  { collection, key, is_keyed, keepMs, limit }: Announcement,
): Promise<void> =>
  change(documents, { collection, keys: [key], limit }, ({ found: [found], now }) => {
    const temporary = found ? temporaryIn(found) : ({ since: now, is_keyed, state: "live" } as const);
    if (temporary.state !== "live") throw isDeleted();
    // No process deletes the thread while a repeated request looks for its run.
    const due = now + (found ? Math.max(keepMs, REPEAT_MS) : keepMs);
    return {
      writes: [{ key, seen: found?.version, body: JSON.stringify(temporary), due }],
      result: undefined,
    };
  });

/** The threads that are deleted, and whose keys are remembered. */
async function countEnded(documents: Documents, collection: OwnedCollection): Promise<number> {
  const all = await documents.list(collection);
  const states = await mapInTicks(collection.tenant, all, (each) => temporaryIn(each).state);
  return states.filter((state) => state === "ended").length;
}

interface PlacedDocument extends Document {
  readonly collection: OwnedCollection;
}

const temporaryIn = ({ body }: Document): TemporaryThread => TemporaryThread.parse(JSON.parse(body));

/** Deletes the thread if it is time, or writes when to look again. Does nothing when the document has changed meanwhile. */
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

/** Deletes the thread. A key is remembered: before, so that a repeated request starts nothing on a thread that is about to go. */
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

/** Without `next`, deletes the document. Undefined when it has changed meanwhile. */
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
