// The parts that are shared by all stores in one file.

import type { Limits } from "../options.ts";
import {
  type ContentChanges,
  createChanges,
  createEventCommitter,
  type EventCommitter,
} from "./commit-events.ts";
import type { Database } from "./database.ts";
import { Flights } from "./flights.ts";
import { createQueue, LiveRuns, type Queue } from "./live-runs.ts";
import { createRemovals, type Removals } from "./removals.ts";
import { createRetention, type Retention } from "./retention.ts";
import { openTail, type Tail } from "./tail.ts";
import { Writer } from "./writer.ts";

export interface StoreContext {
  readonly limits: Limits;
  readonly database: Database;
  readonly live: LiveRuns;
  readonly queue: Queue;
  readonly changes: ContentChanges;
  readonly commit: EventCommitter;
  readonly writer: Writer;
  readonly retention: Retention;
  readonly removals: Removals;
  readonly tail: Tail;
  readonly flights: Flights;
}

export function createContext(database: Database, limits: Limits): StoreContext {
  const flights = new Flights();
  const tail = openTail(database);
  const live = new LiveRuns(database);
  const queue = createQueue(database, limits);
  const removals = createRemovals(database);
  const changes = createChanges(database, removals, limits);
  const commit = createEventCommitter(database, { live, queue, changes, tail, limits });
  const writer = new Writer({ database, live, commit, tail, flights }, limits.leaseMs, limits.logger);
  const retention = createRetention(database, removals, limits);
  return { limits, database, live, queue, changes, commit, writer, retention, removals, tail, flights };
}
