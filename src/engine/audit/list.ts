// Reads a tenant's trail in pages, newest first.

import type { Documents } from "../../agent/core/documents.ts";
import { AppError } from "../../agent/core/errors.ts";
import type { Page } from "../../agent/core/stores.ts";
import { AuditEntry, isKey, keyAt, trailOf } from "./entry.ts";

export interface TrailQuery {
  readonly limit: number;
  readonly cursor?: string | undefined;
  /** The user who acted, or who owns the target. */
  readonly user?: string | undefined;
  /** An action, or the part of an action before the dot. */
  readonly action?: string | undefined;
  /** The earliest and the latest time, in milliseconds since 1970. */
  readonly since?: number | undefined;
  readonly until?: number | undefined;
}

const PAGE = 200;
/** The maximum number of entries that one call examines. */
const EXAMINED = 2_000;

/**
 * Returns the matching entries. A page ends early, possibly empty, once it has examined many entries; the next page
 * continues from there. Throws `invalid_request` for a cursor from another list.
 */
export async function listTrail(
  documents: Documents,
  tenant: string,
  query: TrailQuery,
): Promise<Page<AuditEntry>> {
  const { limit, cursor, since = 0, until } = query;
  const items: AuditEntry[] = [];
  let after = cursor === undefined ? undefined : placeAt(cursor);
  // The key of an entry from this millisecond is longer, so it sorts after this prefix.
  const from = until === undefined ? undefined : keyAt(until);
  if (from !== undefined && (after === undefined || after < from)) after = from;
  for (let examined = 0; examined < EXAMINED; examined += PAGE) {
    const page = await documents.page(trailOf(tenant), { order: "key", limit: PAGE, after });
    for (const { key, body } of page.items) {
      const entry = AuditEntry.parse(JSON.parse(body));
      if (Date.parse(entry.at) < since) return { items };
      if (items.length === limit && after !== undefined) return { items, next_cursor: cursorOf(after) };
      if (matches(entry, query)) items.push(entry);
      after = key;
    }
    if (page.next_cursor === undefined) return { items };
  }
  return { items, ...(after === undefined ? {} : { next_cursor: cursorOf(after) }) };
}

function matches({ actor, target, action }: AuditEntry, { user, action: asked }: TrailQuery): boolean {
  if (user !== undefined && actor.user !== user && target?.user !== user) return false;
  return asked === undefined || action === asked || action.startsWith(`${asked}.`);
}

const cursorOf = (key: string) => Buffer.from(key).toString("base64url");

function placeAt(cursor: string): string {
  const key = Buffer.from(cursor, "base64url").toString();
  if (isKey(key)) return key;
  throw new AppError("invalid_request", `\`${cursor}\` is not a valid cursor for this list.`);
}
