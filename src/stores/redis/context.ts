// What the stores on one Redis share.

import type { Limits } from "../options.ts";
import type { RedisCalls } from "./bus.ts";
import type { Connection } from "./connection.ts";
import type { Pages } from "./event-reader.ts";
import type { Lifetime } from "./lifetime.ts";
import type { LiveTails } from "./live-tails.ts";
import type { Replicas } from "./replicas.ts";
import type { Schedule } from "./schedule.ts";
import type { Channels } from "./subscriber.ts";
import type { Writer } from "./writer.ts";

export interface StoreContext {
  /** Its `now` is for the times that events show; Redis itself goes by its own. */
  readonly limits: Limits;
  readonly redis: Connection;
  readonly replicas: Replicas;
  readonly lifetime: Lifetime;
  /** Threads with runs, for when their leases are over. */
  readonly runSchedule: Schedule;
  /** Threads with deferred calls. */
  readonly callSchedule: Schedule;
  readonly calls: RedisCalls;
  readonly pages: Pages;
  /** The pages that viewers read. */
  readonly replays: Pick<Pages, "read">;
  readonly feeds: LiveTails;
  readonly writer: Writer;
  /** What scripts need to know to deliver what a run says. */
  readonly delivery: Channels;
}
