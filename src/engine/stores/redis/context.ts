// The parts that are shared by all stores in one Redis.

import type { Limits } from "../options.ts";
import type { Pages } from "../shared/event-pages.ts";
import type { Writer } from "../shared/lease-writer.ts";
import type { LiveTails } from "../shared/live-tails.ts";
import type { RedisCalls } from "./bus.ts";
import type { RedisConnection } from "./connection.ts";
import type { RedisOwners } from "./owners.ts";
import type { Replicas } from "./replicas.ts";
import type { Retention } from "./retention.ts";
import type { ScheduleEntry, ThreadSchedule } from "./schedule.ts";
import type { Channels } from "./subscriber.ts";

export interface StoreContext {
  /** `now` provides the times shown in events. Redis itself uses its own clock. */
  readonly limits: Limits;
  readonly redis: RedisConnection;
  readonly replicas: Replicas;
  readonly retention: Retention;
  readonly owners: RedisOwners;
  /** Threads with runs, scheduled for the end of their leases. */
  readonly runSchedule: ThreadSchedule;
  /** Threads with deferred calls. */
  readonly callSchedule: ThreadSchedule;
  readonly calls: RedisCalls;
  readonly pages: Pages;
  /** The pages that viewers read. */
  readonly replays: Pick<Pages, "read">;
  readonly feeds: LiveTails;
  readonly writer: Writer<ScheduleEntry>;
  /** The values that scripts need to deliver a run's events. */
  readonly delivery: Channels;
}
