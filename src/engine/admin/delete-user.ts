// Deletes everything of a user, as far as the time of one request reaches: a repeated call finds the rest.

import { hasCode } from "../../agent/core/errors.ts";
import type { Shelf } from "../../agent/core/items.ts";
import type { Thread } from "../../agent/core/records.ts";
import type { Owner } from "../../protocol/ids.ts";
import { keyOf, settledRun, stopRun } from "../runs/control.ts";
import { deleteThread } from "../runs/thread-actions.ts";
import { isActive } from "./lists.ts";
import type { AdminServices } from "./services.ts";

export interface Deleted {
  /** False: call it again. Something was in use, or there is more than one call deletes. */
  readonly complete: boolean;
  /** What this call has cancelled and deleted. */
  readonly runs_cancelled: number;
  readonly threads: number;
  readonly items: number;
  readonly workspaces: number;
  readonly keys: number;
}

/** How long one call works, about, in ms. */
const WORK_MS = 20_000;
/** How long a run may take to end once it was cancelled, in ms. */
const END_MS = 5_000;
const PAGE = 50;

/**
 * First the API keys are revoked, so that nothing new begins; their records go last. Tools that a tenant has registered and
 * counters of usage stay.
 */
export async function deleteUser(services: AdminServices, owner: Owner): Promise<Deleted> {
  const until = performance.now() + WORK_MS;
  const keys = (await services.keys?.of(owner)) ?? [];
  for (const { id } of keys) await services.keys?.revoke(id);
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
    // Everything that is left is in use.
    if (progress === 0) break;
  }
  const rest = {
    items: await deleteItems(services, owner),
    workspaces: await services.backends.erase(owner),
  };
  if (!hasMore) for (const { id } of keys) await services.keys?.remove(id);
  return {
    complete: !hasMore,
    runs_cancelled: cancelled,
    threads: deleted,
    ...rest,
    keys: hasMore ? 0 : keys.length,
  };
}

/** Those that wait as well, and those first: no other one begins in the place of one that ends. */
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
      // It has ended meanwhile.
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

/** What is kept beside threads, by the agents of today and of former days. */
export async function shelvesOf({ owners, agents }: AdminServices, owner: Owner): Promise<Shelf[]> {
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
