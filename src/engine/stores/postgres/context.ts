// The parts that are shared by all stores in one PostgreSQL database.

import type { Limits } from "../options.ts";
import type { Pages } from "../shared/event-pages.ts";
import type { Writer } from "../shared/lease-writer.ts";
import type { LiveTails } from "../shared/live-tails.ts";
import type { PostgresCalls, RunNewsFeed } from "./bus.ts";
import type { Database } from "./database.ts";
import type { Retention } from "./retention.ts";

export interface StoreContext {
  /** `now` provides the times shown in events. PostgreSQL itself uses its own clock. */
  readonly limits: Limits;
  readonly database: Database;
  readonly retention: Retention;
  readonly calls: PostgresCalls;
  readonly runFeed: RunNewsFeed;
  readonly pages: Pages;
  /** The pages that viewers read. */
  readonly replays: Pick<Pages, "read">;
  readonly feeds: LiveTails;
  readonly writer: Writer;
}
