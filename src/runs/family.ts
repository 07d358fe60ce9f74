// Threads with all those that work for them: deleted and cleared together.

import { AppError } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import type { Thread } from "../core/records.ts";
import type { ThreadStore } from "../core/stores.ts";
import { given } from "../lib/given.ts";
import type { Quotas } from "../quotas/index.ts";

const PAGE = 100;

interface FamilyServices {
  readonly threads: ThreadStore;
  readonly quotas: Quotas;
}

/**
 * Deletes a thread and those below it. False when there is none; throws `thread_busy`, before anything is deleted, when a
 * run is active or waits on one of them.
 */
export async function deleteFamily(services: FamilyServices, owner: Owner, id: string): Promise<boolean> {
  const below = await descendants(services.threads, owner, id);
  if (below.length > 0) await assertFree(services.threads, owner, id);
  for (const child of below) await deleteThread(services, owner, child);
  return deleteThread(services, owner, id);
}

/** The same, but the thread itself stays, empty. */
export async function clearFamily(services: FamilyServices, owner: Owner, id: string): Promise<boolean> {
  const below = await descendants(services.threads, owner, id);
  if (below.length > 0) await assertFree(services.threads, owner, id);
  for (const child of below) await deleteThread(services, owner, child);
  return services.threads.clear(owner, id);
}

async function deleteThread({ threads, quotas }: FamilyServices, owner: Owner, id: string): Promise<boolean> {
  const isDeleted = await threads.delete(owner, id);
  if (isDeleted) await quotas.release(owner, "threads", id);
  return isDeleted;
}

/** The lowest first, so that who begins again finds the rest. Throws `thread_busy` when one is not free. */
async function descendants(threads: ThreadStore, owner: Owner, id: string): Promise<string[]> {
  const found = new Set<string>([id]);
  for (const parent of found)
    for (const child of await childrenOf(threads, owner, parent)) {
      if (child.status === "busy") throw busy(child.id);
      found.add(child.id);
    }
  found.delete(id);
  return [...found].reverse();
}

async function childrenOf(threads: ThreadStore, owner: Owner, parent: string): Promise<Thread[]> {
  // Whoever has children knows of them; all others need not be looked for.
  if (!("subagents" in (await threads.state(owner, parent)))) return [];
  const found: Thread[] = [];
  let cursor: string | undefined;
  do {
    const page = await threads.list(owner, { parent, limit: PAGE, ...given({ cursor }) });
    found.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return found;
}

async function assertFree(threads: ThreadStore, owner: Owner, id: string): Promise<void> {
  if ((await threads.get(owner, id))?.status === "busy") throw busy(id);
}

function busy(id: string): AppError {
  return new AppError("thread_busy", `Thread \`${id}\` has a run that is active or waits. Cancel it first.`);
}
