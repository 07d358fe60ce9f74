// The file that quotas are kept in, `usage.db`. Any number of processes may have it open at once.

import { join } from "node:path";
import { openSmallFile, type SmallFile } from "./small-file.ts";

/**
 * `tenant` and `user` are the JSON of [tenant] and [tenant, user], `name` is either; `period` is a day or a month.
 * Times are ms since 1970, cost is in millionths.
 */
const SCHEMA = `
CREATE TABLE held (
  thing TEXT NOT NULL, user TEXT NOT NULL, id TEXT NOT NULL, tenant TEXT NOT NULL, ends INTEGER NOT NULL,
  PRIMARY KEY (thing, user, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX held_by_tenant ON held (thing, tenant);
CREATE INDEX held_by_end ON held (ends);
CREATE TABLE reserved (
  id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, user TEXT NOT NULL,
  tokens INTEGER NOT NULL, cost INTEGER NOT NULL, ends INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE spent (
  name TEXT NOT NULL, period TEXT NOT NULL, tokens INTEGER NOT NULL, cost INTEGER NOT NULL,
  PRIMARY KEY (name, period)
) STRICT, WITHOUT ROWID;
CREATE TABLE usage (
  user TEXT NOT NULL, day TEXT NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL, calls INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL, cache_write_tokens INTEGER NOT NULL, cost INTEGER NOT NULL,
  PRIMARY KEY (user, day, agent, model)
) STRICT, WITHOUT ROWID;
`;

/** Makes the file when there is none. Throws `unavailable` when it cannot be used, as does all that is asked later. */
export function openUsageFile(dataDir: string): SmallFile {
  return openSmallFile({
    ...{ path: join(dataDir, "usage.db"), content: "The usage", schema: SCHEMA },
    pragmas: "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL",
  });
}
