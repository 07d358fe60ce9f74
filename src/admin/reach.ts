// Lists over all users: one user after the other, page by page, with a bound on what one page looks at.

import { AppError } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import type { Owners } from "../core/owners.ts";
import type { Page } from "../core/stores.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";

/** Whose things are looked at: everyone's, a tenant's, a user's. */
export interface Reach {
  readonly tenant?: string | undefined;
  /** Only with a tenant. */
  readonly user?: string | undefined;
}

export interface PageOf {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export type Owned<T> = T & Owner;

/** Users that are asked at once, and for one page. */
const AT_ONCE = 16;
const MOST = 320;

/** Where a page ended: behind a user, or behind a page of a user's own list. */
interface Place {
  readonly owner: Owner;
  readonly inner?: string | undefined;
}

/**
 * What `read` has of each user within reach, in the order of the users. A page that has looked at many users ends early, maybe
 * with nothing: the next one continues it. Throws `invalid_request` for a cursor of another list.
 */
export async function overUsers<T extends object>(
  owners: Owners,
  reach: Reach,
  { limit, cursor }: PageOf,
  read: (owner: Owner, page: PageOf) => Promise<Page<T>>,
): Promise<Page<Owned<T>>> {
  const from = cursor === undefined ? undefined : placeAt(cursor, reach);
  const items: Owned<T>[] = [];
  let after = from?.inner === undefined ? from?.owner : undefined;
  let next: readonly Place[] = from?.inner === undefined ? [] : [from];
  for (let looked = 0; looked < MOST; looked += AT_ONCE) {
    if (next.length === 0) next = await usersBehind(owners, reach, after);
    if (next.length === 0) return { items };
    if (after && items.length === limit) return { items, next_cursor: cursorOf({ owner: after }) };
    const pages = await Promise.all(next.map((place) => read(place.owner, { limit, cursor: place.inner })));
    for (const [at, place] of next.entries()) {
      const room = limit - items.length;
      if (room === 0 && after) return { items, next_cursor: cursorOf({ owner: after }) };
      const page = pages[at] ?? { items: [] };
      const fits = page.items.length <= room;
      const taken = fits ? page : await read(place.owner, { limit: room, cursor: place.inner });
      items.push(...taken.items.map((item) => ({ ...item, ...place.owner })));
      const inner = taken.next_cursor;
      if (inner !== undefined) return { items, next_cursor: cursorOf({ owner: place.owner, inner }) };
      after = place.owner;
    }
    next = [];
  }
  return { items, ...omitUndefined({ next_cursor: after && cursorOf({ owner: after }) }) };
}

async function usersBehind(owners: Owners, reach: Reach, after: Owner | undefined): Promise<Place[]> {
  const { tenant, user } = reach;
  if (tenant !== undefined && user !== undefined) return after ? [] : [{ owner: { tenant, user } }];
  return (await owners.list({ limit: AT_ONCE, after, tenant })).map((owner) => ({ owner }));
}

const cursorOf = ({ owner: { tenant, user }, inner }: Place) =>
  Buffer.from(JSON.stringify([tenant, user, ...(inner === undefined ? [] : [inner])])).toString("base64url");

function placeAt(cursor: string, reach: Reach): Place {
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
  return new AppError("invalid_request", `\`${cursor}\` is not a cursor of this list.`);
}

/** A list of names, each its own cursor. */
export function pageOfNames<T>({ limit }: PageOf, found: readonly T[], nameOf: (item: T) => string): Page<T> {
  const items = found.slice(0, limit);
  const last = items.at(-1);
  if (found.length <= limit || last === undefined) return { items };
  return { items, next_cursor: Buffer.from(nameOf(last)).toString("base64url") };
}

export const nameAt = (cursor: string | undefined) =>
  cursor === undefined ? undefined : Buffer.from(cursor, "base64url").toString();
