// Which threads must be looked after, so that no run is forgotten by everybody: those with runs, when their lease would
// be over, tenant by tenant.
//
// The note lies elsewhere than the thread. It is made before a run is, again once the run is there, as somebody may have
// looked in between, and with every renewal of a lease. It is taken away only by who has found nothing on the thread
// since it was made as it is: so it may say too much, never too little.

import type { Owner } from "../../core/ids.ts";
import type { RedisCalls } from "./calls.ts";
import type { Connection } from "./connection.ts";
import { DUE, tenantTag } from "./keys.ts";
import { quietly } from "./lifetime.ts";
import { createNotes, type Note } from "./notes.ts";
import { noteDue } from "./scripts/note-due.ts";
import { remindDue } from "./scripts/remind-due.ts";

/** All that wait throw `unavailable`, but for `announce`. */
export interface Due {
  /** The thread must be looked after in `wait` ms at the latest. */
  note(owner: Owner, thread: string, wait: number): Promise<Note>;
  /** Anybody may take up the thread's next run now. When that cannot be said, it is found later. Never throws. */
  announce(owner: Owner, thread: string): Promise<void>;
  /** Whether the thread is noted for a lease from now; not when there are `cap` of the tenant already. */
  noteWithin(cap: number, owner: Owner, thread: string): Promise<boolean>;
  /** There are runs on the thread: it is noted again if the note was lost. Waits for nothing. */
  remind(owner: Owner, thread: string): void;
  /** Up to `limit` of those that must be looked after now; the same ones again, if they are not put within a lease. */
  pick(limit: number): Promise<Note[]>;
  /** When the thread must be looked after again, undefined: never; unless it was noted anew. */
  put(note: Note, time: string | undefined): Promise<void>;
}

export function createDue(redis: Connection, calls: RedisCalls, leaseMs: number): Due {
  const notes = createNotes(redis, DUE, leaseMs);
  const due: Due = {
    note: (owner, thread, wait) => notes.note(tenantTag(owner), thread, wait),
    async announce(owner, thread) {
      await due.note(owner, thread, 0).then(calls.waiting, () => {});
    },
    async noteWithin(cap, owner, thread) {
      const tenant = tenantTag(owner);
      const args = { tenant, thread, wait: leaseMs, cap };
      return (await redis.run(noteDue, keysOf(tenant), args)) !== null;
    },
    remind(owner, thread) {
      const tenant = tenantTag(owner);
      quietly(redis.run(remindDue, keysOf(tenant), { tenant, thread, wait: leaseMs }));
    },
    pick: notes.pick,
    put: notes.put,
  };
  return due;
}

const keysOf = (tenant: string) => ({ tenants: DUE.tenants, threads: DUE.threads + tenant });
