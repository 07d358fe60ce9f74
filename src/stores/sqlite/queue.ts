// The threads of the file on which runs are active or wait, and whose turn it is. Every change is told when it is
// committed. Runs that had a holder when the file was opened have none any more.

import type { RunCall } from "../../core/stores.ts";
import { Calls } from "../calls.ts";
import type { Limits } from "../options.ts";
import { Turns } from "../turns.ts";
import type { Database } from "./database.ts";
import { ownerOf, type ThreadKey, threadOf, threadText } from "./keys.ts";

export interface Queue {
  /** On how many threads of the owner's tenant runs are active or wait. */
  count(owner: string): number;
  /** Whether a run is active on the thread or waits for it. */
  isBusy(thread: ThreadKey): boolean;
  /** When the lease of the thread's run is over, unless it is already. */
  heldUntil(thread: ThreadKey): number | undefined;
  /** Somebody executes the thread's run, and says so again within a lease. */
  hold(thread: ThreadKey): void;
  /** No run is active on the thread or waits for it. */
  drop(thread: ThreadKey): void;
  /** The thread whose turn it is. Whoever takes it says what it is at then, or puts it back. */
  take(): ThreadKey | undefined;
  /** No process executes the thread's run. */
  putBack(thread: ThreadKey): void;
  call(call: RunCall): void;
  listen(listener: (call: RunCall) => void): void;
  close(): void;
}

export function createQueue(database: Database, limits: Limits): Queue {
  const turns = new Turns<string>(limits);
  const calls = new Calls();
  const busy = database.query<{ owner: string; thread_id: string }>(`
    SELECT owner, thread_id FROM (
      SELECT owner, thread_id, created_at FROM runs WHERE status = 'running'
      UNION ALL SELECT owner, thread_id, created_at FROM runs WHERE status = 'pending')
    GROUP BY owner, thread_id ORDER BY min(created_at)`);

  const queue: Queue = {
    count: (owner) => turns.count(tenantOf(owner)),
    isBusy: (thread) => turns.isBusy(tenantOf(thread[0]), threadText(thread)),
    heldUntil: (thread) => turns.heldUntil(threadText(thread)),
    hold: (thread) => turns.hold(tenantOf(thread[0]), threadText(thread)),
    drop: (thread) => turns.drop(tenantOf(thread[0]), threadText(thread)),
    take() {
      const text = turns.take();
      return text === undefined ? undefined : threadOf(text);
    },
    putBack: (thread) => turns.wait(tenantOf(thread[0]), threadText(thread)),
    call: (call) => calls.say(call),
    listen: (listener) => calls.listen(listener),
    close: () => calls.close(),
  };
  for (const { owner, thread_id } of busy.each()) queue.putBack([owner, thread_id]);
  return queue;
}

const tenantOf = (owner: string) => ownerOf(owner).tenant;
