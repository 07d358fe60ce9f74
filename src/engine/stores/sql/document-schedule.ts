// Decides which due documents are picked next. Tenants take turns, and a tenant's turn begins when its first document
// is due. Each due document of a user has an entry in a collection next to the tenant's, so one index finds all due
// documents.

import {
  type Collection,
  type DocumentWrite,
  isOwned,
  MAX_PICKED,
  type OwnedCollection,
  type PickedDocument,
  type PickOptions,
} from "../../../agent/core/documents.ts";
import { inTurn } from "../document-rules.ts";
import { collectionKey } from "../row-keys.ts";
import type { SqlDialect } from "./dialect.ts";
import { documentTexts, scheduleTexts } from "./document-texts.ts";
import type { Executor, Statement } from "./executor.ts";

/** A due document of the tenant whose turn it is. If there is no key, this turn has no due documents. */
interface TurnRow {
  readonly collection: string;
  readonly key: string | null;
  readonly version: string | null;
}

interface WrittenVersion {
  readonly version: string;
  readonly clock: number | null;
}

export interface DocumentSchedule {
  pick(kind: string, options: PickOptions): Promise<PickedDocument[]>;
  /**
   * Returns the writes that follow from writing a collection's documents. These writes must come before the writes of
   * the documents.
   */
  writesOf(collection: Collection, writes: readonly DocumentWrite[], written: WrittenVersion): Statement[];
  /** Returns the writes that follow from deleting these documents. */
  deletionsOf(collection: Collection, keys: readonly string[]): Statement[];
}

/** `of` returns the executor that changes the turns of a kind. */
export function sqlSchedule(
  dialect: SqlDialect,
  of: (kind: string) => Pick<Executor, "clock" | "change">,
): DocumentSchedule {
  const sql = scheduleTexts(dialect);
  const { put, remove } = documentTexts(dialect);

  return {
    async pick(kind, { limit, holdMs, aheadMs }) {
      const executor = of(kind);
      const clock = executor.clock();
      const most = Math.min(limit, MAX_PICKED);
      const waiting: Statement<TurnRow> = { sql: sql.waiting, values: [kind, clock, most, aheadMs ?? null] };
      return executor.change([waiting], ([rows]) => {
        const tenants = Map.groupBy(rows, ({ collection }) => tenantIn(collection));
        const due = [...tenants.values()].map((documents) =>
          documents.flatMap(({ key, version, ...turn }) =>
            key === null || version === null ? [] : [{ ...turn, key, version }],
          ),
        );
        const picked = inTurn(due, most);
        const holds = picked.map(({ collection, key, version }) => ({
          sql: sql.hold,
          values: [collection, key, version, clock, holdMs],
        }));
        const turns = [...new Set(rows.map(({ collection }) => collection))].flatMap((collection) => [
          { sql: sql.end, values: [collection] },
          { sql: sql.next, values: [collection, clock] },
        ]);
        const result = picked.map(({ collection, key, version }) => ({
          ...pickedIn(kind, collection, key),
          version,
        }));
        return { writes: [...holds, ...turns], result };
      });
    },

    writesOf(collection, writes, { version, clock }) {
      if (!isOwned(collection)) return [];
      const { kind, user } = collection;
      const due = writes.flatMap(({ key, body, due }) =>
        body !== undefined && typeof due === "number" ? { key, due } : [],
      );
      const name = turnName(collection);
      const first = Math.min(...due.map((each) => each.due));
      const turn = due.length > 0 ? [{ sql: sql.add, values: [name, kind, first, clock] }] : [];
      if (user === undefined) return turn;
      const isDue = new Set(due.map(({ key }) => key));
      const others = writes.map(({ key }) => key).filter((key) => !isDue.has(key));
      const entries = due.map(({ key, due: at }) => ({
        sql: put,
        values: [name, entryKey(user, key), version, "", at, null, null, clock],
      }));
      return [...turn, ...deletionsOf(collection, others), ...entries];
    },

    deletionsOf,
  };

  function deletionsOf(collection: Collection, keys: readonly string[]): Statement[] {
    if (!isOwned(collection) || collection.user === undefined || keys.length === 0) return [];
    const { user } = collection;
    return [{ sql: remove, values: [turnName(collection), keys.map((key) => entryKey(user, key))] }];
  }
}

/**
 * Returns the collection of a turn's due documents: the tenant's collection itself, or the shared collection of its
 * users' entries.
 */
function turnName(collection: OwnedCollection): string {
  const { kind, tenant, user } = collection;
  return user === undefined ? collectionKey(collection).name : JSON.stringify([kind, tenant, null]);
}

const tenantIn = (turn: string) => (JSON.parse(turn) as [kind: string, tenant: string])[1];

const entryKey = (user: string, key: string) => JSON.stringify([user, key]);

function pickedIn(kind: string, turn: string, text: string): Omit<PickedDocument, "version"> {
  // A document's key, or an `entryKey`.
  const key = JSON.parse(text) as string | [user: string, key: string];
  const tenant = tenantIn(turn);
  if (typeof key === "string") return { collection: { kind, tenant }, key };
  return { collection: { kind, tenant, user: key[0] }, key: key[1] };
}
