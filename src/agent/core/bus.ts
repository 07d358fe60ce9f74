// The port to the user's bus, which carries what happens outside of a single run: at most once, and only to current listeners.

import { z } from "zod";
import { DoneStatus } from "../../protocol/event.ts";
import type { Owner } from "../../protocol/ids.ts";
import { Interrupt } from "../../protocol/interrupt.ts";
import { BackendStatus } from "./backend.ts";

const Run = { thread_id: z.string(), run_id: z.string(), agent: z.string() };

export const UserEvent = z
  .discriminatedUnion("event", [
    z.object({ event: z.literal("backend_status"), data: BackendStatus }),
    z.object({ event: z.literal("run_started"), data: z.object(Run) }),
    z.object({ event: z.literal("run_ended"), data: z.object({ ...Run, status: DoneStatus }) }),
    z.object({
      event: z.literal("interrupt_opened"),
      data: z.object({ ...Run, ...Interrupt.pick({ id: true, kind: true, name: true }).shape }),
    }),
    z.object({ event: z.literal("interrupt_closed"), data: z.object({ ...Run, id: z.string() }) }),
    z.object({
      event: z.literal("thread_changed"),
      data: z.object({
        thread_id: z.string(),
        change: z.enum(["created", "updated", "cleared", "deleted"]),
      }),
    }),
    z.object({ event: z.literal("config_changed"), data: z.object({}) }),
  ])
  .meta({ id: "UserEvent" });
export type UserEvent = z.infer<typeof UserEvent>;

/** An event for all users. */
export type Announcement = Extract<UserEvent, { event: "config_changed" }>;

export interface EventBus {
  /** Never waits and never throws. Subscribers that are too slow miss it. */
  publish(owner: Owner, event: UserEvent): void;
  /** To all subscribers of this process only. Never waits and never throws. */
  announce(event: Announcement): void;
  /**
   * The events published from the call on, in order, until `signal` aborts or it is returned. Throws `events_expired`
   * and ends when it falls more than 1,000 events behind. Throws `unavailable` when the store is closed.
   */
  subscribe(owner: Owner, signal: AbortSignal): AsyncGenerator<UserEvent, void, void>;
}
