// Lists the owners of threads. Each owner is found with one index step, without reading threads.

import type { Shelf } from "../../../agent/core/items.ts";
import type { OwnerIndex } from "../owners.ts";
import { ownerText } from "../row-keys.ts";
import type { SqlDialect } from "./dialect.ts";
import type { Executor } from "./executor.ts";

const KINDS: readonly Shelf["kind"][] = ["notes", "tasks", "reflections", "settings", "sent"];

export function sqlOwners(dialect: SqlDialect, executor: Pick<Executor, "read">): OwnerIndex {
  const sql = textsOf(dialect);

  return {
    async between(after, before, limit) {
      const values = [after, before, limit];
      const rows = await executor.read<{ owner: string }>({ sql: sql.between, values });
      return rows.map(({ owner }) => owner);
    },

    async shelves(owner) {
      // The names that documents.ts creates. The next character is the quote before the agent's name.
      const starts = KINDS.map((kind) =>
        JSON.stringify([kind, ownerText(owner), "agent"]).replace(/\]$/, ","),
      );
      const values = starts.flatMap((start) => [start, `${start}#`]);
      const rows = await executor.read<{ collection: string }>({ sql: sql.shelves, values });
      return rows.map(({ collection }) => {
        // Not validated, because only documents.ts writes this column.
        const [kind, , , agent] = JSON.parse(collection) as [Shelf["kind"], string, string, string];
        return { owner, of: { agent }, kind };
      });
    },
  };
}

function textsOf({ isWhole }: SqlDialect) {
  const next = `SELECT min(owner) FROM threads WHERE ${isWhole} AND owner < $2 AND owner >`;
  const within = (n: number) =>
    `SELECT DISTINCT collection FROM documents WHERE collection > $${n} AND collection < $${n + 1}`;

  return {
    between: `
      WITH RECURSIVE found (owner) AS (
        SELECT (${next} $1) UNION ALL SELECT (${next} found.owner) FROM found WHERE found.owner IS NOT NULL)
      SELECT owner FROM found WHERE owner IS NOT NULL LIMIT $3`,
    shelves: KINDS.map((_, at) => within(2 * at + 1)).join(" UNION ALL "),
  };
}
