// The port to a user's bus, which reports events from outside a single run. It delivers at most once, and only to current
// subscribers.

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
  /** Returns at once and never throws. Slow subscribers miss the event. */
  publish(owner: Owner, event: UserEvent): void;
  /** Publishes to all subscribers of this process only. Returns at once and never throws. */
  announce(event: Announcement): void;
  /**
   * Yields the events published after the call, in order, until `signal` aborts or the caller returns. Throws
   * `events_expired` when the subscriber is more than 1,000 events behind, or `unavailable` when the store is
   * closed.
   */
  subscribe(owner: Owner, signal: AbortSignal): AsyncGenerator<UserEvent, void, void>;
}
