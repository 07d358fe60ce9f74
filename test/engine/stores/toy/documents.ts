// Documents of the toy: a collection is one text. Those of a thread lie under its name, and leave with it.

import type { Collection, Documents, ListedDocument } from "../../../../src/agent/core/documents.ts";
import { isOwned, MAX_PICKED, TRIMMED } from "../../../../src/agent/core/documents.ts";
import * as rules from "../../../../src/engine/stores/document-rules.ts";
import { noSuchThread } from "../../../../src/engine/stores/errors.ts";
import type { OwnerIndex } from "../../../../src/engine/stores/owners.ts";
import { collectionKey, ownerText, threadText } from "../../../../src/engine/stores/row-keys.ts";
import type { Files } from "./files.ts";

type Kept = ListedDocument & { readonly due: number | null };
interface Shelved {
  readonly collection: Collection;
  readonly documents: readonly Kept[];
}

const bytesOf = (documents: readonly Kept[]) =>
  documents.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0);

export function toyDocuments(files: Files): Documents & Pick<OwnerIndex, "shelves"> {
  /** When tenants had their last turns. */
  const turns = new Map<string, number>();
  let turn = 0;

  const threadOf = (collection: Collection) => {
    const { thread } = collectionKey(collection);
    return thread ? threadText(thread) : "";
  };
  const nameOf = (collection: Collection) =>
    `documents ${threadOf(collection)} ${collectionKey(collection).name}`;
  const exists = (collection: Collection) =>
    threadOf(collection) === "" || files.thread(threadOf(collection)) !== undefined;
  const all = (collection: Collection) =>
    (exists(collection) && files.read<Shelved>(nameOf(collection))?.documents) || [];
  const save = (collection: Collection, documents: readonly Kept[]) =>
    files.write(nameOf(collection), { collection, documents });
  const shelved = () => files.names("documents ").flatMap((name) => files.read<Shelved>(name) ?? []);

  function dueIn(documents: readonly Kept[], aheadMs = Infinity): Kept[] {
    const now = files.limits.now();
    const isDue = ({ due }: Kept) => due !== null && rules.isDueAt(now, aheadMs, due);
    return documents.filter(isDue).sort((a, b) => (a.due ?? 0) - (b.due ?? 0));
  }

  return {
    async read(collection, keys) {
      const found = keys.map((key) => all(collection).find((each) => each.key === key));
      return { found, exists: exists(collection), now: files.limits.now() };
    },
    list: async (collection) => [...all(collection)],
    due: async (collection, limit, aheadMs) => dueIn(all(collection), aheadMs).slice(0, limit),
    async page(collection, query) {
      const { order, prefix = "", limit } = query;
      const after = rules.placeOf(query);
      const found = all(collection)
        .filter((each) => each.key.startsWith(prefix) && (!after || rules.standsAfter(order, after, each)))
        .sort(rules.inOrder(order));
      return rules.listedPage(found.slice(0, limit + 1), query);
    },
    async size(collection) {
      return { documents: all(collection).length, bytes: bytesOf(all(collection)) };
    },
    async trim(collection, { ms = Infinity, count = Infinity }) {
      const newest = all(collection).toSorted(rules.inOrder("created"));
      const oldest = files.limits.now() - ms;
      const stay = newest.filter(({ created_at }, at) => created_at >= oldest && at < count);
      const left = newest.slice(0, Math.max(stay.length, newest.length - TRIMMED));
      save(collection, left);
      return newest.length - left.length;
    },
    async pick(kind, { limit, holdMs, aheadMs }) {
      const ofKind = shelved().filter(({ collection }) => collection.kind === kind);
      const due = ofKind.flatMap(({ collection, documents }) => {
        if (!isOwned(collection)) return [];
        return dueIn(documents, aheadMs).map((each) => ({ ...each, collection }));
      });
      const tenants = [...Map.groupBy(due, ({ collection: { tenant } }) => tenant)];
      tenants.sort(([a], [b]) => (turns.get(a) ?? 0) - (turns.get(b) ?? 0));
      const inTurn = rules.inTurn(
        tenants.map(([, documents]) => documents),
        Math.min(limit, MAX_PICKED),
      );
      return inTurn.map(({ collection, key, version }) => {
        const held = files.limits.now() + holdMs;
        const documents = all(collection).map((each) => (each.key === key ? { ...each, due: held } : each));
        save(collection, documents);
        turns.set(collection.tenant, ++turn);
        return { collection, key, version };
      });
    },
    async write(collection, writes, { version, ...bounds }) {
      const now = files.limits.now();
      const dues = writes.map(rules.dueOf);
      const documents = new Map(all(collection).map((each) => [each.key, each]));
      const others = () => all(collection).filter(({ key }) => !writes.some((write) => write.key === key));
      const refused = rules.refusalOf(writes, bounds, {
        exists: exists(collection),
        versions: writes.map(({ key }) => documents.get(key)?.version),
        documents: () => documents.size,
        otherBytes: () => bytesOf(others()),
      });
      if (refused === "none") throw noSuchThread(rules.threadIdOf(collection));
      if (refused) return refused;
      for (const [at, { key, body }] of writes.entries()) {
        const due = dues[at] ?? null;
        const created_at = documents.get(key)?.created_at ?? now;
        if (body === undefined) documents.delete(key);
        else documents.set(key, { key, body, version, due, created_at, updated_at: now });
      }
      save(collection, [...documents.values()]);
      return "written";
    },
    async shelves(owner) {
      return shelved().flatMap(({ collection, documents }) => {
        const isOwn = "of" in collection && "agent" in collection.of && documents.length > 0;
        return isOwn && ownerText(collection.owner) === ownerText(owner) ? [collection] : [];
      });
    },
  };
}
