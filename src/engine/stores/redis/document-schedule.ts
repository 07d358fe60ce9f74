// Decides which due documents are picked next, tenant by tenant. A schedule is in another cluster slot than its
// documents. An entry is therefore added before its document is written and checked when it is due. Entries may be
// stale, but no due document is missing.

import {
  type Collection,
  type DocumentWrite,
  isOwned,
  MAX_PICKED,
  type OwnedCollection,
  type PickedDocument,
  type PickOptions,
} from "../../../agent/core/documents.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { dueOf } from "../document-rules.ts";
import type { StoreContext } from "./context.ts";
import { documentOf, readDocuments } from "./document-scripts.ts";
import { collectionKeys, DEDUPE_TTL_MS, documentTurns, tenantTag } from "./keys.ts";
import { createSchedule, type ScheduleEntry, type ThreadSchedule } from "./schedule.ts";

/** The number of milliseconds after which an announced write can no longer happen. */
const WRITTEN_MS = DEDUPE_TTL_MS;

export interface RedisSchedule {
  pick(kind: string, options: PickOptions): Promise<PickedDocument[]>;
  /**
   * Adds an entry for each document that will be due, before the documents are written. If this process dies in
   * between, the entries are stale. Call the returned function after the write to add the entries again, in case a
   * process checked and removed them too early.
   */
  noted(collection: Collection, writes: readonly DocumentWrite[]): Promise<() => Promise<void>>;
}

export function redisSchedule({ redis }: Pick<StoreContext, "redis">): RedisSchedule {
  return {
    async pick(kind, { limit, holdMs, aheadMs }) {
      const schedule = createSchedule(redis, documentTurns(kind), { holdMs, ...omitUndefined({ aheadMs }) });
      const most = Math.min(limit, MAX_PICKED);
      const picked: PickedDocument[] = [];
      while (picked.length < most) {
        const entries = await schedule.claim({ limit: most - picked.length, except: [] });
        if (entries.length === 0) break;
        const found = await Promise.all(entries.map((entry) => dueAt(kind, entry, { schedule, aheadMs })));
        picked.push(...found.flatMap((each) => each ?? []));
      }
      return picked;
    },

    async noted(collection, writes) {
      const due = writes.flatMap((write) => {
        const time = dueOf(write);
        return time === null ? [] : { key: write.key, time };
      });
      if (!isOwned(collection) || due.length === 0) return async () => {};
      const schedule = createSchedule(redis, documentTurns(collection.kind), { holdMs: 0 });
      const now = await clock(collection);
      const add = async (least: number) => {
        const entries = due.map(({ key, time }) =>
          schedule.add(tenantTag(collection), entryText(collection, key), Math.max(time - now, least)),
        );
        await Promise.all(entries);
      };
      await add(WRITTEN_MS);
      return () => add(0);
    },
  };

  async function clock(collection: Collection): Promise<number> {
    const [, , now = 0] =
      (await redis.run(readDocuments, collectionKeys(collection), { bytes: "" }, [])) ?? [];
    return Number(now);
  }

  /** Returns the document of an entry if it is due. */
  async function dueAt(
    kind: string,
    entry: ScheduleEntry,
    {
      schedule,
      aheadMs = Number.POSITIVE_INFINITY,
    }: { schedule: ThreadSchedule; aheadMs: number | undefined },
  ): Promise<PickedDocument | undefined> {
    const { collection, key } = ofEntry(kind, entry.thread);
    const places = collectionKeys(collection);
    const due = await redis.ask((client) => client.zscore(places.due, key));
    const [[text], , now] = (await redis.run(readDocuments, places, { bytes: "" }, [key])) ?? [[], "", 0];
    const document = documentOf(key, text ?? undefined);
    const [time, at] = [Number(due), Number(now)];
    if (due !== null && document && (time <= at || time > at + aheadMs))
      return { collection, key, version: document.version };
    await schedule.reschedule(entry, due === null || !document ? undefined : time);
    return undefined;
  }
}

/** Returns the entry text of a document. */
export const entryText = ({ tenant, user }: OwnedCollection, key: string) =>
  JSON.stringify(user === undefined ? [tenant, key] : [tenant, key, user]);

export function ofEntry(kind: string, text: string): { collection: OwnedCollection; key: string } {
  // Not validated, because only `entryText` creates these.
  const [tenant, key, user] = JSON.parse(text) as [tenant: string, key: string, user?: string];
  return { collection: { kind, tenant, ...omitUndefined({ user }) }, key };
}
