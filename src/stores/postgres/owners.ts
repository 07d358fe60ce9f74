// Who has threads in PostgreSQL. Each owner is found by a step in the index of threads, so that no thread is read.

import type { Shelf } from "../../core/items.ts";
import type { OwnerIndex } from "../owners.ts";
import { ownerText } from "../row-keys.ts";
import type { Database } from "./database.ts";

const KINDS: readonly Shelf["kind"][] = ["notes", "tasks", "reflections", "settings", "sent"];
const NEXT = "SELECT min(owner) FROM threads WHERE owner < $2 AND owner >";

export function postgresOwners(database: Database): OwnerIndex {
  return {
    async between(after, before, limit) {
      const rows = await database.query<{ owner: string }>(
        `WITH RECURSIVE found (owner) AS (
          SELECT (${NEXT} $1) UNION ALL SELECT (${NEXT} found.owner) FROM found WHERE found.owner IS NOT NULL)
        SELECT owner FROM found WHERE owner IS NOT NULL LIMIT $3`,
        [after, before, limit],
      );
      return rows.map(({ owner }) => owner);
    },

    async shelves(owner) {
      // As documents.ts names them: what comes next is the quote before the agent's name.
      const starts = KINDS.map((kind) =>
        JSON.stringify([kind, ownerText(owner), "agent"]).replace(/\]$/, ","),
      );
      const rows = await database.query<{ collection: string }>(
        `SELECT DISTINCT collection FROM unnest($1::text[]) AS start
        JOIN documents ON collection > start AND collection < start || '#'`,
        [starts],
      );
      return rows.map(({ collection }) => {
        // Only documents.ts writes this column.
        const [kind, , , agent] = JSON.parse(collection) as [Shelf["kind"], string, string, string];
        return { owner, of: { agent }, kind };
      });
    },
  };
}
