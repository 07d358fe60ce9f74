// The format of a store's data, and which processes may use it. During an upgrade the last release and this one work on one
// store, so a release reads what the one before it wrote, and writes what that one can read.

import { AppError } from "../core/errors.ts";

export interface Format {
  /** Of the newest process that ever used the store: one more for each change of what is stored. */
  readonly version: number;
  /** A process of this version, or of a newer one, can use what is written. */
  readonly readableFrom: number;
}

/**
 * What the store says once a process of the format `own` has joined; undefined when that process cannot read what is there, or none
 * that was there could read what it writes: those may still run.
 */
export function joined(found: Format | undefined, own: Format): Format | undefined {
  if (!found) return own;
  if (own.version < found.readableFrom || found.version < own.readableFrom) return undefined;
  return {
    version: Math.max(found.version, own.version),
    readableFrom: Math.max(found.readableFrom, own.readableFrom),
  };
}

/** As `joined`. Throws `unavailable` for a store that cannot be used; `store` names it at the beginning of a sentence. */
export function join(store: string, found: Format | undefined, own: Format): Format {
  const record = joined(found, own);
  if (record) return record;
  const { version = 0, readableFrom = 0 } = found ?? {};
  throw new AppError(
    "unavailable",
    version < own.readableFrom
      ? `${store} was last used by a version of Skein that knows formats up to ${version}: reading what this version writes takes format ${own.readableFrom}. Start the version that brought format ${own.readableFrom} in place of the last one, then this one: CHANGELOG.md.`
      : `${store} was written by a newer version of Skein, or by one from before the first release: reading it takes format ${readableFrom}, and this version knows formats up to ${own.version}. Start that version. To use this one, restore a backup of a format that it knows, or use another store.`,
  );
}
