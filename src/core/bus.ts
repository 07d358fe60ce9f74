// The port to a user's own bus: what happens outside of any one run. At most once, and only to who listens.

import { z } from "zod";
import { BackendStatus } from "./backend.ts";
import { DoneStatus } from "./event.ts";
import type { Owner } from "./ids.ts";

const Run = { thread_id: z.string(), run_id: z.string(), agent: z.string() };

export const UserEvent = z
  .discriminatedUnion("event", [
    z.object({ event: z.literal("backend_status"), data: BackendStatus }),
    z.object({ event: z.literal("run_started"), data: z.object(Run) }),
    z.object({ event: z.literal("run_ended"), data: z.object({ ...Run, status: DoneStatus }) }),
    z.object({ event: z.literal("config_changed"), data: z.object({}) }),
  ])
  .meta({ id: "UserEvent" });
export type UserEvent = z.infer<typeof UserEvent>;

/** What is the same for everybody. */
export type Announcement = Extract<UserEvent, { event: "config_changed" }>;

export interface EventBus {
  /** Never waits and never throws: who does not listen, or listens too slowly, misses it. */
  publish(owner: Owner, event: UserEvent): void;
  /** To everyone who listens by this process; the others tell it to their own. Never waits and never throws. */
  announce(event: Announcement): void;
  /**
   * What is published from the call on, in order, until `signal` aborts or it is returned. One that falls more
   * than 1,000 events behind throws `events_expired`, then or as soon as it is pulled, and hears no more. Throws
   * `unavailable` when the store is closed.
   */
  subscribe(owner: Owner, signal: AbortSignal): AsyncGenerator<UserEvent, void, void>;
}
