// What the stores on one Redis share.

import type { Limits } from "../options.ts";
import type { RedisCalls } from "./calls.ts";
import type { Connection } from "./connection.ts";
import type { Delivery } from "./delivery.ts";
import type { Feeds } from "./feeds.ts";
import type { Lifetime } from "./lifetime.ts";
import type { Pages } from "./pages.ts";
import type { Replicas } from "./replicas.ts";
import type { Schedule } from "./schedule.ts";
import type { Writer } from "./writer.ts";

export interface Engine {
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
  readonly feeds: Feeds;
  readonly writer: Writer;
  /** What scripts need to know to deliver what a run says. */
  readonly delivery: Delivery;
}
