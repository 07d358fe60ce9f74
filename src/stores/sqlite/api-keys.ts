// API keys in a file of their own, `keys.db`. Unlike the file of threads any number of processes have it open at
// once: keys are made and revoked on the command line while the server runs.

import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type ApiKey, type ApiKeyStore, apiKeyExists } from "../../core/api-keys.ts";
import { AppError, messageOf } from "../../core/errors.ts";
import type { Scope } from "../../core/principal.ts";
import { decodePosition, encodePosition, pageOf } from "../page.ts";
import { storeClosed } from "../refusals.ts";
import { ownerOf, ownerText } from "./keys.ts";

/** `owner` is the JSON of [tenant, user], `tenant` of the tenant, `scopes` of a list. Times are ms since 1970. */
const SCHEMA = `
CREATE TABLE api_keys (
  id TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  tenant TEXT NOT NULL,
  scopes TEXT NOT NULL,
  name TEXT NOT NULL,
  hash TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at TEXT,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_by_age ON api_keys (created_at, id);
`;
const VERSION = 1;

/** How long a process waits for one that is just writing, in ms. */
const BUSY_MS = 2_000;

interface Row {
  readonly id: string;
  readonly owner: string;
  readonly scopes: string;
  readonly name: string;
  readonly hash: string;
  readonly created_at: number;
  readonly expires_at: string | null;
  readonly revoked_at: number | null;
}
const COLUMNS = "id, owner, scopes, name, hash, created_at, expires_at, revoked_at";

export interface OpenApiKeys {
  readonly keys: ApiKeyStore;
  close(): void;
}

/** Makes the file when there is none. Throws `unavailable` when it cannot be used, as does all that is asked later. */
export function openSqliteApiKeys(dataDir: string, now: () => number = Date.now): OpenApiKeys {
  const path = join(dataDir, "keys.db");
  const file = translated(path, () => open(dataDir, path));
  return {
    keys: keysIn(file, <T>(work: () => T) => translated(path, work, file), now),
    close() {
      if (file.isOpen) file.close();
    },
  };
}

function keysIn(file: DatabaseSync, ask: <T>(work: () => T) => T, now: () => number): ApiKeyStore {
  const insert = file.prepare(
    `INSERT INTO api_keys (${COLUMNS}, tenant) VALUES (?, ?, ?, ?, ?, ?, ?, NULL, ?) ON CONFLICT DO NOTHING RETURNING ${COLUMNS}`,
  );
  const select = file.prepare(`SELECT ${COLUMNS} FROM api_keys WHERE id = ?`);
  const selectPage = file.prepare(`
    SELECT ${COLUMNS} FROM api_keys
    WHERE (?1 IS NULL OR (created_at, id) < (?1, ?2)) AND (?3 IS NULL OR tenant = ?3)
    ORDER BY created_at DESC, id DESC LIMIT ?4`);
  const end = file.prepare(
    `UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ? RETURNING ${COLUMNS}`,
  );
  // The table is STRICT: what a column was declared to hold is what comes back.
  const rowOf = (found: object | undefined) => found as Row | undefined;

  return {
    async create({ id, tenant, user, scopes, name, hash, expires_at = null }) {
      const values = [id, ownerText({ tenant, user }), JSON.stringify(scopes), name, hash, now(), expires_at];
      const row = ask(() => rowOf(insert.get(...values, JSON.stringify(tenant))));
      if (!row) throw apiKeyExists(id);
      return shown(row);
    },

    async find(id) {
      const row = ask(() => rowOf(select.get(id)));
      return row && { ...shown(row), hash: row.hash };
    },

    async list({ limit, cursor, tenant }) {
      const before = cursor === undefined ? undefined : decodePosition(cursor);
      const ofTenant = tenant === undefined ? null : JSON.stringify(tenant);
      const rows = ask(() =>
        selectPage.all(before?.updatedAt ?? null, before?.id ?? null, ofTenant, limit + 1),
      ) as unknown as Row[]; // as above
      const page = pageOf(rows, limit, ({ id, created_at }) => encodePosition({ updatedAt: created_at, id }));
      return { ...page, items: page.items.map(shown) };
    },

    async revoke(id) {
      const row = ask(() => rowOf(end.get(now(), id)));
      return row && shown(row);
    },
  };
}

function shown({ owner, scopes, created_at, expires_at, revoked_at, id, name }: Row): ApiKey {
  return {
    ...{ id, ...ownerOf(owner), name },
    // Only `create` writes this column.
    scopes: JSON.parse(scopes) as Scope[],
    created_at: new Date(created_at).toISOString(),
    ...(expires_at === null ? {} : { expires_at }),
    ...(revoked_at === null ? {} : { revoked_at: new Date(revoked_at).toISOString() }),
  };
}

function open(dataDir: string, path: string): DatabaseSync {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const file = new DatabaseSync(path, { timeout: BUSY_MS });
  try {
    chmodSync(path, 0o600);
    // Of two that open it at once, the second one waits here and finds the table made.
    file.exec("PRAGMA synchronous = FULL; BEGIN IMMEDIATE");
    const version = Number(file.prepare("PRAGMA user_version").get()?.user_version);
    if (version > VERSION)
      throw new AppError(
        "unavailable",
        `\`${path}\` was written by a newer version of this program. Use that.`,
      );
    if (version === 0) file.exec(`${SCHEMA} PRAGMA user_version = ${VERSION}`);
    file.exec("COMMIT");
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}

function translated<T>(path: string, work: () => T, file?: DatabaseSync): T {
  try {
    return work();
  } catch (error) {
    if (file && !file.isOpen) throw storeClosed();
    if (error instanceof AppError) throw error;
    throw new AppError("unavailable", `The API keys in \`${path}\` cannot be reached: ${messageOf(error)}.`, {
      cause: error,
    });
  }
}
