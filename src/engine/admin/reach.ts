// Lists resources across users, user by user and page by page. One page examines a limited number of users.

import { AppError } from "../../agent/core/errors.ts";
import type { Owners } from "../../agent/core/owners.ts";
import type { Page } from "../../agent/core/stores.ts";
import type { Owner } from "../../protocol/ids.ts";

/** Selects the resources to list: of all users, of one tenant or of one user. */
export interface Reach {
  readonly tenant?: string | undefined;
  /** Requires `tenant`. */
  readonly user?: string | undefined;
}

export interface PageOf {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export type Owned<T> = T & Owner;

/** The number of users queried concurrently. The second value limits the users per page. */
const AT_ONCE = 16;
const MOST = 320;

/** Where a page ended: after a user, or after a page of a user's own list. */
interface ListPosition {
  readonly owner: Owner;
  readonly inner?: string | undefined;
}

type ReadPage<T> = (owner: Owner, page: PageOf) => Promise<Page<T>>;

/**
 * Returns what `read` finds for each user within reach, in user order. A page ends early, possibly empty, once it has
 * examined many users; the next page continues from there. Throws `invalid_request` for a cursor from another list.
 */
export async function overUsers<T extends object>(
  owners: Owners,
  reach: Reach,
  { limit, cursor }: PageOf,
  read: ReadPage<T>,
): Promise<Page<Owned<T>>> {
  const from = cursor === undefined ? undefined : placeAt(cursor, reach);
  const items: Owned<T>[] = [];
  let places = from?.inner === undefined ? await usersBehind(owners, reach, from?.owner) : [from];
  for (let looked = AT_ONCE; ; looked += AT_ONCE) {
    const stop = await fill(items, limit, places, read);
    if (stop) return { items, next_cursor: cursorOf(stop) };
    const owner = places.at(-1)?.owner;
    places = owner ? await usersBehind(owners, reach, owner) : [];
    if (!owner || places.length === 0) return { items };
    if (items.length === limit || looked >= MOST) return { items, next_cursor: cursorOf({ owner }) };
  }
}

/**
 * Adds items of the users at `places` until there are `limit` items. Returns the position at which it stopped, or
 * undefined if it read all lists to the end.
 */
async function fill<T extends object>(
  items: Owned<T>[],
  limit: number,
  places: readonly ListPosition[],
  read: ReadPage<T>,
): Promise<ListPosition | undefined> {
  const pages = await Promise.all(places.map(({ owner, inner }) => read(owner, { limit, cursor: inner })));
  let last: Owner | undefined;
  for (const [at, { owner, inner }] of places.entries()) {
    const room = limit - items.length;
    if (room === 0 && last) return { owner: last };
    const page = pages[at] ?? { items: [] };
    const taken = page.items.length <= room ? page : await read(owner, { limit: room, cursor: inner });
    items.push(...taken.items.map((item) => ({ ...item, ...owner })));
    if (taken.next_cursor !== undefined) return { owner, inner: taken.next_cursor };
    last = owner;
  }
  return undefined;
}

async function usersBehind(owners: Owners, reach: Reach, after: Owner | undefined): Promise<ListPosition[]> {
  const { tenant, user } = reach;
  if (tenant !== undefined && user !== undefined) return after ? [] : [{ owner: { tenant, user } }];
  return (await owners.list({ limit: AT_ONCE, after, tenant })).map((owner) => ({ owner }));
}

const cursorOf = ({ owner: { tenant, user }, inner }: ListPosition) =>
  Buffer.from(JSON.stringify([tenant, user, ...(inner === undefined ? [] : [inner])])).toString("base64url");

function placeAt(cursor: string, reach: Reach): ListPosition {
  const parts = textsIn(cursor);
  const [tenant, user, inner] = parts ?? [];
  const isOfReach =
    (reach.tenant === undefined || reach.tenant === tenant) &&
    (reach.user === undefined || reach.user === user);
  if (tenant === undefined || user === undefined || !isOfReach) throw badCursor(cursor);
  return { owner: { tenant, user }, inner };
}

function textsIn(cursor: string): string[] | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    return Array.isArray(value) && value.every((each) => typeof each === "string") ? value : undefined;
  } catch {
    return undefined;
  }
}

export function badCursor(cursor: string): AppError {
  return new AppError("invalid_request", `\`${cursor}\` is not a valid cursor for this list.`);
}

/** Returns a page of names in which each name is its own cursor. */
export function pageOfNames<T>({ limit }: PageOf, found: readonly T[], nameOf: (item: T) => string): Page<T> {
  const items = found.slice(0, limit);
  const last = items.at(-1);
  if (found.length <= limit || last === undefined) return { items };
  return { items, next_cursor: Buffer.from(nameOf(last)).toString("base64url") };
}

export const nameAt = (cursor: string | undefined) =>
  cursor === undefined ? undefined : Buffer.from(cursor, "base64url").toString();
