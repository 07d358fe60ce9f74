// The format of a store's data, and which processes may use it. During an upgrade the last release and this one use the same store.
// So each release can read what the last one wrote, and the other way round.

import { AppError } from "../../agent/core/errors.ts";

export interface Format {
  /** Version of the newest process that ever used the store. Every change of the stored data adds one. */
  readonly version: number;
  /** Oldest version that can use the stored data. */
  readonly readableFrom: number;
}

/**
 * The format of the store after a process of the format `own` has joined. Undefined when that process cannot read the stored data,
 * or when older processes, which may still run, could not read its writes.
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
