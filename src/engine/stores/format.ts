// The format of a store's data, and which processes can use it. During an upgrade, the previous release and this one
// use the same store, so each must be able to read the other's data.

import { AppError } from "../../agent/core/errors.ts";

export interface Format {
  /** The version of the newest process that has used the store. Every change to the stored data increments it. */
  readonly version: number;
  /** The oldest version that can use the stored data. */
  readonly readableFrom: number;
}

/**
 * Returns the store's format after a process with the format `own` has joined. Returns undefined if that process cannot
 * read the stored data, or if older processes, which may still be running, could not read its data.
 */
export function joined(found: Format | undefined, own: Format): Format | undefined {
  if (!found) return own;
  if (own.version < found.readableFrom || found.version < own.readableFrom) return undefined;
  return {
    version: Math.max(found.version, own.version),
    readableFrom: Math.max(found.readableFrom, own.readableFrom),
  };
}

/**
 * Like `joined`, but throws `unavailable` for a store that cannot be used. `store` is the store's name, as written at
 * the beginning of a sentence.
 */
export function join(store: string, found: Format | undefined, own: Format): Format {
  const record = joined(found, own);
  if (record) return record;
  const { version = 0, readableFrom = 0 } = found ?? {};
  throw new AppError(
    "unavailable",
    version < own.readableFrom
      ? `${store} was last used by a version of Skein that supports formats up to ${version}. The data of this version requires format ${own.readableFrom}. First start the version that introduced format ${own.readableFrom}, then this one. CHANGELOG.md names it.`
      : `${store} was written by a newer version of Skein, or by one from before the first release. Its data requires format ${readableFrom}, and this version supports formats up to ${own.version}. Start that version. To use this one, restore a backup of a format that it supports, or use another store.`,
  );
}
