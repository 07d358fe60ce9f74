// Where users' changes of their agents are kept: one document for each user and agent.

import { AppError } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import type { ItemStore, Shelf } from "../core/stores.ts";

const KEY = "overrides";
const MAX_ATTEMPTS = 16;

const shelfOf = (owner: Owner, agent: string): Shelf => ({ owner, of: { agent }, kind: "settings" });

/** Nothing when the user has changed nothing. */
export async function keptOverrides(items: ItemStore, owner: Owner, agent: string): Promise<unknown> {
  return (await items.get(shelfOf(owner, agent), KEY))?.value;
}

/**
 * Keeps what `change` makes of what is kept, whoever else changes it at the same moment. Throws what `change` throws, and
 * `limit_exceeded` for what is too large.
 */
export async function changeOverrides<T>(
  items: ItemStore,
  { owner, agent }: { owner: Owner; agent: string },
  change: (before: unknown) => T,
): Promise<T> {
  const shelf = shelfOf(owner, agent);
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const before = await items.get(shelf, KEY);
    const value = change(before?.value);
    if (await items.put(shelf, { key: KEY, value, version: before?.version ?? 0 })) return value;
  }
  throw new AppError("unavailable", `The overrides of \`${agent}\` are changed all the time. Try again.`);
}

export async function forgetOverrides(items: ItemStore, owner: Owner, agent: string): Promise<void> {
  await items.delete(shelfOf(owner, agent), KEY);
}
