// Deletes all data of a user, or stops when the time for one request is used up. Repeating the call continues the deletion.

import { retain } from "../../agent/core/documents.ts";
import { hasCode } from "../../agent/core/errors.ts";
import type { Shelf } from "../../agent/core/items.ts";
import type { Thread } from "../../agent/core/records.ts";
import type { Owner } from "../../protocol/ids.ts";
import { keyOf, settledRun, stopRun } from "../runs/control.ts";
import { deleteThread } from "../runs/thread-actions.ts";
import { TEMPORARY_THREADS } from "../temporary-threads/index.ts";
import { isActive } from "./lists.ts";
import type { AdminServices } from "./services.ts";

export interface DeletionReport {
  /**
   * False if the deletion is incomplete because a resource was in use or one call could not delete everything. Call
   * again.
   */
  readonly complete: boolean;
  /** The number of runs that this call cancelled. The fields below count what it deleted. */
  readonly runs_cancelled: number;
  readonly threads: number;
  readonly items: number;
  readonly workspaces: number;
  readonly keys: number;
}

/** The kinds of documents stored per user. */
const USER_DOCUMENTS = [TEMPORARY_THREADS] as const;

/** The approximate duration of one call, in milliseconds. */
const WORK_MS = 20_000;
/** The time that a cancelled run has to end, in milliseconds. */
const END_MS = 5_000;
const PAGE = 50;

/**
 * Revokes the API keys and deletes the user's documents first, so no new work can begin. Removes the key records last.
 * Keeps the tenant's registered tools and the usage counters.
 */
export async function deleteUser(services: AdminServices, owner: Owner): Promise<DeletionReport> {
  const until = performance.now() + WORK_MS;
  const keys = (await services.keys?.of(owner)) ?? [];
  for (const { id } of keys) await services.keys?.revoke(id);
  for (const kind of USER_DOCUMENTS) await retain(services.documents, { kind, ...owner }, { count: 0 });
  let records = 0;
  for (const each of services.records) records += await each.deleteAll(owner);
  const { threads } = services.runs.stores;
  let [deleted, cancelled, hasMore] = [0, 0, true];
  while (hasMore && performance.now() < until) {
    const { items } = await threads.list(owner, { limit: PAGE, children: true });
    let progress = 0;
    for (const thread of items) {
      if (performance.now() >= until) break;
      cancelled += await cancelRuns(services, owner, thread);
      if (await isDeleted(services, owner, thread.id)) progress += 1;
    }
    deleted += progress;
    hasMore = items.length > 0;
    // All remaining threads are in use.
    if (progress === 0) break;
  }
  const rest = {
    items: records + (await deleteItems(services, owner)),
    workspaces: await services.backends.erase(owner),
  };
  for (const each of services.records) await each.deleteMentions?.(owner);
  if (!hasMore) for (const { id } of keys) await services.keys?.remove(id);
  return {
    complete: !hasMore,
    runs_cancelled: cancelled,
    threads: deleted,
    ...rest,
    keys: hasMore ? 0 : keys.length,
  };
}

/** Cancels waiting runs first, so none of them starts when an active one ends. */
async function cancelRuns({ runs }: AdminServices, owner: Owner, { id, status }: Thread): Promise<number> {
  if (status !== "busy") return 0;
  let count = 0;
  const { items } = await runs.stores.runs.list(owner, id, { limit: PAGE });
  const active = items
    .filter(isActive)
    .sort((a, b) => Number(a.status !== "pending") - Number(b.status !== "pending"));
  for (const run of active)
    try {
      await stopRun(runs, keyOf(owner, run), "cancel");
      count += 1;
    } catch (error) {
      // The run has ended in the meantime.
      if (!hasCode(error, "run_not_active") && !hasCode(error, "not_found")) throw error;
    }
  const running = active.find((run) => run.status === "running");
  if (running)
    await settledRun(runs, keyOf(owner, running), AbortSignal.timeout(END_MS)).catch(ignoreMissing);
  return count;
}

function ignoreMissing(error: unknown): void {
  if (!hasCode(error, "not_found") && !hasCode(error, "events_expired")) throw error;
}

async function isDeleted({ runs, quotas }: AdminServices, owner: Owner, id: string): Promise<boolean> {
  try {
    return await deleteThread({ threads: runs.stores.threads, quotas }, owner, id);
  } catch (error) {
    if (hasCode(error, "thread_busy")) return false;
    throw error;
  }
}

export const ITEM_KINDS = ["settings", "reflections", "notes", "tasks"] as const;

/** Returns the shelves that current and former agents keep outside of threads. */
export async function shelvesOf(
  { owners, agents }: Pick<AdminServices, "owners" | "agents">,
  owner: Owner,
): Promise<Shelf[]> {
  const ofToday = agents().flatMap(({ name }) =>
    ITEM_KINDS.map((kind): Shelf => ({ owner, of: { agent: name }, kind })),
  );
  const all = [...(await owners.shelves(owner)), ...ofToday];
  return [...new Map(all.map((shelf) => [JSON.stringify(shelf), shelf])).values()];
}

async function deleteItems(services: AdminServices, owner: Owner): Promise<number> {
  const { items } = services.runs.stores;
  let count = 0;
  for (const shelf of await shelvesOf(services, owner))
    for (const { key } of await items.list(shelf)) if (await items.delete(shelf, key)) count += 1;
  return count;
}
