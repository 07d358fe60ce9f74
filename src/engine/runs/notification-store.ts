// Notifications of waiting runs that outlive their process. Each is stored before the end of its run. The sending
// process holds it for a short time; after that, any other process sends it under the same id.

import { z } from "zod";
import { claimDue } from "../../agent/core/document-claims.ts";
import { type Collection, change, type Documents, remove } from "../../agent/core/documents.ts";
import { isSettled } from "../../agent/core/records.ts";
import type { RunStore, ThreadStore } from "../../agent/core/stores.ts";

const KIND = "notifications";
const collectionOf = ({ owner: { tenant } }: Pick<Notification, "owner">): Collection => ({
  kind: KIND,
  tenant,
});
/** Milliseconds. Longer than any process holds a notification. */
const NEVER_HELD_MS = 120_000;

export const Notification = z.object({
  /** The `webhook-id`. */
  id: z.string(),
  owner: z.object({ tenant: z.string(), user: z.string() }),
  run_id: z.string(),
  thread_id: z.string(),
  body: z.string(),
  /** Time at which the run ended, in milliseconds since 1970. */
  at: z.number(),
});
export type Notification = z.infer<typeof Notification>;

export interface NotificationStore {
  /**
   * Stores the notification and holds it for `ms` milliseconds, at most two minutes. Returns the stored notification: a
   * run that ends again keeps its first one.
   */
  keep(notification: Notification, ms: number): Promise<Notification>;
  /** Holds the notification for `ms` milliseconds from now. */
  hold(notification: Notification, ms: number): Promise<void>;
  /**
   * Returns at most `limit` notifications that no process holds and whose runs still wait, with tenants in turn, and
   * holds them for `ms` milliseconds.
   */
  take(limit: number, ms: number): Promise<Notification[]>;
  /** Call it once the notification is delivered or dropped. */
  forget(notification: Notification): Promise<void>;
}

export function notificationStore(
  documents: Documents,
  { runs, threads }: { readonly runs: Pick<RunStore, "get">; readonly threads: Pick<ThreadStore, "get"> },
): NotificationStore {
  const parsed = (body: string) => Notification.parse(JSON.parse(body));
  const forget = async (notification: Pick<Notification, "owner" | "run_id">) => {
    await remove(documents, collectionOf(notification), notification.run_id);
  };

  return {
    forget,

    keep(notification, ms) {
      const key = notification.run_id;
      const collection = collectionOf(notification);
      return change(documents, { collection, keys: [key] }, ({ found: [before], now }) => {
        const body = before?.body ?? JSON.stringify(notification);
        return { writes: [{ key, seen: before?.version, body, due: now + ms }], result: parsed(body) };
      });
    },

    hold(notification, ms) {
      const key = notification.run_id;
      const collection = collectionOf(notification);
      return change(documents, { collection, keys: [key] }, ({ found: [document], now }) => {
        const writes = document ? [{ key, seen: document.version, body: document.body, due: now + ms }] : [];
        return { writes, result: undefined };
      });
    },

    async take(limit, ms) {
      const taken: Notification[] = [];
      for (const { body } of await claimDue(documents, KIND, {
        limit,
        leaseMs: ms,
        aheadMs: NEVER_HELD_MS,
      })) {
        const held = parsed(body);
        const { owner, thread_id, run_id } = held;
        const run = await runs.get(owner, thread_id, run_id);
        // Its process died before the run's end was stored. The run will end again.
        if (run && !isSettled(run.status)) continue;
        const thread = await threads.get(owner, thread_id);
        if (run?.status === "interrupted" && thread?.status === "interrupted") taken.push(held);
        else await forget(held);
      }
      return taken;
    },
  };
}
