// Pages and their cursors, and how much of a thread to process at once.

import { AppError } from "../../agent/core/errors.ts";
import type { Page } from "../../agent/core/stores.ts";

/** `found` contains one more item than `limit` if there is a next page. */
export function pageOf<T>(found: readonly T[], limit: number, cursorOf: (last: T) => string): Page<T> {
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return found.length > limit && last !== undefined ? { items, next_cursor: cursorOf(last) } : { items };
}

/**
 * The position of a thread in its owner's list, most recent change first. If times are equal, the larger id comes
 * first.
 */
export interface Position {
  readonly updatedAt: number;
  readonly id: string;
}

/** Returns true if a thread comes after another one in the list. */
export const standsBehind = (before: Position, { updatedAt, id }: Position): boolean =>
  updatedAt < before.updatedAt || (updatedAt === before.updatedAt && id < before.id);

export function encodePosition({ updatedAt, id }: Position): string {
  return Buffer.from(`${updatedAt} ${id}`).toString("base64url");
}

export function decodePosition(cursor: string): Position {
  // PostgreSQL accepts neither numbers of more than 64 bits nor NUL characters.
  const [, updatedAt, id] = /^(\d{1,16}) ([^\0]+)$/.exec(Buffer.from(cursor, "base64url").toString()) ?? [];
  if (updatedAt === undefined || id === undefined) throw badCursor(cursor);
  return { updatedAt: Number(updatedAt), id };
}

export function badCursor(cursor: string): AppError {
  return new AppError("invalid_request", `\`${cursor}\` is not a valid cursor for this list.`);
}

/** The number of a thread's rows to copy or delete per tick of the event loop. */
export const SLICE_ROWS = 128;

/** Returns how many of `sizes` fit into `bytes`, in order. Returns at least 1 unless `sizes` is empty. */
export function fitting(sizes: readonly { readonly bytes: number }[], bytes: number): number {
  let left = bytes;
  const over = sizes.findIndex((each) => {
    left -= each.bytes;
    return left < 0;
  });
  return over === -1 ? sizes.length : Math.max(1, over);
}
