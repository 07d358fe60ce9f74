// Who has threads in the file. Each owner is found by a step in the index of threads, so that no thread is read.

import type { Shelf } from "../../core/items.ts";
import type { OwnerIndex } from "../owners.ts";
import { ownerText } from "../row-keys.ts";
import type { Database } from "./database.ts";

const KINDS: readonly Shelf["kind"][] = ["notes", "tasks", "reflections", "settings", "sent"];

export function sqliteOwners(database: Database): OwnerIndex {
  const next = "SELECT min(owner) FROM threads WHERE staged IS NULL AND owner < ?2 AND owner >";
  const select = database.query<{ owner: string }>(`
    WITH RECURSIVE found (owner) AS (
      SELECT (${next} ?1) UNION ALL SELECT (${next} found.owner) FROM found WHERE found.owner IS NOT NULL)
    SELECT owner FROM found WHERE owner IS NOT NULL LIMIT ?3`);
  const selectCollections = database.query<{ collection: string }>(
    "SELECT DISTINCT collection FROM documents WHERE collection > ? AND collection < ?",
  );

  return {
    async between(after, before, limit) {
      database.assertOpen();
      return database.read(() => select.all(after, before, limit)).map(({ owner }) => owner);
    },

    async shelves(owner) {
      database.assertOpen();
      return KINDS.flatMap((kind) => {
        // As documents.ts names them: what comes next is the quote before the agent's name.
        const start = JSON.stringify([kind, ownerText(owner), "agent"]).replace(/\]$/, ",");
        const rows = database.read(() => selectCollections.all(start, `${start}#`));
        return rows.map(({ collection }) => {
          const [, , , agent] = JSON.parse(collection) as [string, string, string, string];
          return { owner, of: { agent }, kind };
        });
      });
    },
  };
}
