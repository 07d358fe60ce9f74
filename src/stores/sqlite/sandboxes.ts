// The ledger of sandboxes in the file.

import type { SandboxKeep, SandboxLedger, SandboxState } from "../../backends/ledger.ts";
import { createLedger, type SandboxEntry } from "../sandbox-ledger.ts";
import type { Engine } from "./engine.ts";
import { ownerOf, ownerText } from "./keys.ts";

interface SandboxRow {
  readonly id: string;
  readonly owner: string;
  readonly name: string;
  readonly keep: string;
  readonly state: SandboxState;
  readonly used_at: number;
  readonly revision: string;
  readonly due_at: number | null;
}

const COLUMNS = "id, owner, name, keep, state, used_at, revision, due_at";

export function sqliteSandboxes({ database, limits }: Engine): SandboxLedger {
  const select = database.query<SandboxRow>(`SELECT ${COLUMNS} FROM sandboxes WHERE id = ?`);
  const upsert = database.query(
    `INSERT OR REPLACE INTO sandboxes (${COLUMNS}, tenant) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const remove = database.query("DELETE FROM sandboxes WHERE id = ?");
  const countOthers = database.query<{ total: number; tenant: number }>(`
    SELECT count(*) AS total, count(*) FILTER (WHERE tenant = ?2) AS tenant FROM sandboxes
    WHERE state IN ('running', 'ending') AND id <> ?1`);
  const selectDue = database.query<SandboxRow>(
    `SELECT ${COLUMNS} FROM sandboxes WHERE due_at <= ? ORDER BY due_at, id LIMIT ?`,
  );
  const selectIdle = database.query<SandboxRow>(
    `SELECT ${COLUMNS} FROM sandboxes WHERE state = 'running' AND used_at <= ? ORDER BY used_at, id LIMIT ?`,
  );

  return createLedger(
    {
      change: (work) => database.write("durable", work),
      get(id) {
        const row = database.read(() => select.get(id));
        return row && entryOf(row);
      },
      put(entry) {
        const { id, owner, name, keep, state, used_at, revision, due_at } = entry;
        const values = [id, ownerText(owner), name, JSON.stringify(keep), state, used_at, revision, due_at];
        upsert.run(...values, JSON.stringify(owner.tenant));
      },
      delete: (id) => void remove.run(id),
      others: ({ id, owner }) => countOthers.get(id, JSON.stringify(owner.tenant)) ?? { total: 0, tenant: 0 },
      due: (time, limit) => database.read(() => selectDue.all(time, limit).map(entryOf)),
      idle: (time, limit) => database.read(() => selectIdle.all(time, limit).map(entryOf)),
    },
    limits.now,
  );
}

function entryOf({ owner, keep, ...row }: SandboxRow): SandboxEntry {
  // Only `put` writes this column.
  return { ...row, owner: ownerOf(owner), keep: JSON.parse(keep) as SandboxKeep };
}
