// What the stores of one file share.

import type { Limits } from "../options.ts";
import { type Changes, createChanges } from "./changes.ts";
import type { Database } from "./database.ts";
import { createLifetime, type Lifetime } from "./lifetime.ts";
import { LiveRuns } from "./live.ts";
import { createQueue, type Queue } from "./queue.ts";
import { createRecorder, type Recorder } from "./record.ts";
import { Writer } from "./writer.ts";

export interface Engine {
  readonly limits: Limits;
  readonly database: Database;
  readonly live: LiveRuns;
  readonly queue: Queue;
  readonly changes: Changes;
  readonly record: Recorder;
  readonly writer: Writer;
  readonly lifetime: Lifetime;
}

export function createEngine(database: Database, limits: Limits): Engine {
  const live = new LiveRuns(database);
  const queue = createQueue(database, limits);
  const changes = createChanges(database, limits);
  const record = createRecorder(database, { live, queue, changes, limits });
  const writer = new Writer(database, live, record);
  const lifetime = createLifetime(database, limits);
  return { limits, database, live, queue, changes, record, writer, lifetime };
}
