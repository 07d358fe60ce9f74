// Shares of a thread. A share's id lets other users of the same tenant read the thread until the share ends. Shares are
// stored as items of the thread and deleted with it.

import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import type { ItemStore, Shelf } from "../../agent/core/items.ts";
import { randomId } from "../../lib/random-id.ts";
import type { Owner } from "../../protocol/ids.ts";

export const Share = z
  .object({ id: z.string(), created_at: z.iso.datetime(), expires_at: z.iso.datetime() })
  .meta({ id: "Share" });
export type Share = z.infer<typeof Share>;

/** The maximum number of active shares per thread. */
export const MAX_SHARES = 20;

const PREFIX = "share:";
const shelfOf = (owner: Owner, thread: string): Shelf => ({ owner, of: { thread }, kind: "settings" });
const isOpen = ({ expires_at }: Share) => Date.parse(expires_at) > Date.now();

/** Throws `not_found` if the thread does not exist, and `limit_exceeded` if it has `MAX_SHARES` active shares. */
export async function addShare(
  items: ItemStore,
  owner: Owner,
  thread: string,
  lastsMs: number,
): Promise<Share> {
  const shelf = shelfOf(owner, thread);
  const kept = await keptOf(items, shelf);
  for (const { id } of kept.filter((each) => !isOpen(each))) await items.delete(shelf, PREFIX + id);
  if (kept.filter(isOpen).length >= MAX_SHARES)
    throw new AppError(
      "limit_exceeded",
      `A thread can have at most ${MAX_SHARES} shares. End one of them first.`,
    );
  const now = Date.now();
  const times = {
    created_at: new Date(now).toISOString(),
    expires_at: new Date(now + lastsMs).toISOString(),
  };
  const id = `share_${randomId()}`;
  await items.put(shelf, { key: PREFIX + id, value: times });
  return { id, ...times };
}

/** Returns the active shares, newest first. */
export async function sharesOf(items: ItemStore, owner: Owner, thread: string): Promise<Share[]> {
  const kept = await keptOf(items, shelfOf(owner, thread));
  return kept.filter(isOpen).sort((a, b) => (a.created_at < b.created_at ? 1 : -1));
}

/** Returns false if the share does not exist or has ended. */
export async function isShared(items: ItemStore, owner: Owner, thread: string, id: string): Promise<boolean> {
  const item = await items.get(shelfOf(owner, thread), PREFIX + id);
  return item !== undefined && isOpen({ id, ...(item.value as Omit<Share, "id">) });
}

/** Returns false if the share does not exist. */
export const endShare = (items: ItemStore, owner: Owner, thread: string, id: string): Promise<boolean> =>
  items.delete(shelfOf(owner, thread), PREFIX + id);

async function keptOf(items: ItemStore, shelf: Shelf): Promise<Share[]> {
  const all = await items.list(shelf);
  return all.flatMap(({ key, value }) =>
    key.startsWith(PREFIX) ? [{ id: key.slice(PREFIX.length), ...(value as Omit<Share, "id">) }] : [],
  );
}
