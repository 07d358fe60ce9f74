// Notes of when threads must be looked after, tenant by tenant. They lie elsewhere than the threads: whoever makes one
// before the thread is changed, and takes it away only as it was picked, says too much, never too little.

import { randomId } from "../../lib/random-id.ts";
import type { Connection } from "./connection.ts";
import type { NotesPlace } from "./keys.ts";
import { noteDue } from "./scripts/note-due.ts";
import { pickDue } from "./scripts/pick-due.ts";
import { putDue } from "./scripts/put-due.ts";

/** A note as it was made at some time. */
export interface Note {
  readonly tenant: string;
  /** The thread's tag. */
  readonly thread: string;
  readonly time: string;
}

/** All throw `unavailable`. */
export interface Notes {
  /** The thread must be looked after in `wait` ms at the latest. */
  note(tenant: string, thread: string, wait: number): Promise<Note>;
  /** Up to `limit` of those that must be looked after now; the same ones again, if they are not put within `holdMs`. */
  pick(limit: number): Promise<Note[]>;
  /** When the thread must be looked after again, undefined: never; unless it was noted anew. */
  put(note: Note, time: string | undefined): Promise<void>;
}

export function createNotes(
  redis: Connection,
  { tenants, threads, taken }: NotesPlace,
  holdMs: number,
): Notes {
  const keysOf = (tenant: string) => ({ tenants, threads: threads + tenant });
  return {
    async note(tenant, thread, wait) {
      const time = (await redis.run(noteDue, keysOf(tenant), { tenant, thread, wait, cap: "" })) ?? "";
      return { tenant, thread, time };
    },
    async pick(limit) {
      const keys = { tenants, threads, taken: taken(randomId()) };
      const found = await redis.run(pickDue, keys, { limit, hold: holdMs });
      const picked: Note[] = [];
      for (let at = 0; at < found.length; at += 3) {
        const [tenant = "", thread = "", time = ""] = found.slice(at, at + 3);
        picked.push({ tenant, thread, time });
      }
      return picked;
    },
    async put({ tenant, thread, time }, next = "") {
      await redis.run(putDue, keysOf(tenant), { tenant, thread, picked: time, due: next });
    },
  };
}
