// API keys in a file of their own, `keys.db`. Unlike the file of threads any number of processes have it open at
// once: keys are made and revoked on the command line while the server runs.

import { join } from "node:path";
import { type ApiKey, type ApiKeyStore, apiKeyExists } from "../../http/auth/api-keys.ts";
import type { Scope } from "../../http/auth/principal.ts";
import { decodePosition, encodePosition, pageOf } from "../page.ts";
import { ownerOf, ownerText } from "./keys.ts";
import { openSmallFile, type SmallFile } from "./small-file.ts";

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
  const file = openSmallFile({
    ...{ path: join(dataDir, "keys.db"), content: "The API keys", schema: SCHEMA },
    pragmas: "PRAGMA synchronous = FULL",
  });
  return { keys: keysIn(file, now), close: file.close };
}

function keysIn(file: SmallFile, now: () => number): ApiKeyStore {
  const { ask } = file;
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
