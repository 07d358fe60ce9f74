// Schedules: each starts runs by itself, one for each of its slots, in any process that is alive then.

import { type ClaimedDocument, finish, renew } from "../../agent/core/document-claims.ts";
import { change, type Document, type Documents, retain } from "../../agent/core/documents.ts";
import { AppError, hasCode } from "../../agent/core/errors.ts";
import { newRunId } from "../../agent/core/new-ids.ts";
import type { RunRecord } from "../../agent/core/records.ts";
import type { Page } from "../../agent/core/stores.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Owner } from "../../protocol/ids.ts";
import { createDueWorker, type DueWorker } from "../due-worker.ts";
import { withdrawRun } from "../runs/withdraw.ts";
import { type FileSchedules, refuseFileId, writeFileSchedules } from "./file-schedules.ts";
import { choose, type FireServices, fire, type NextRecord, starting, startScheduled } from "./fire.ts";
import {
  recordOf,
  runNow,
  type Schedule,
  type ScheduleRecord,
  type ScheduleSpec,
  scheduleOf,
} from "./schedule.ts";
import { KIND, schedulesOf, writeOf } from "./stored.ts";
import { checkTiming } from "./timing.ts";
import { recordAfter } from "./written.ts";

/** Longer than the start of a run takes, and shorter than the grace of a slot: another process starts it before it counts as missed. */
const LEASE_MS = 20_000;
const EVERY_MS = 1_000;
const AT_ONCE = 16;

export interface ScheduleOptions extends FireServices {
  readonly documents: Documents;
  readonly logger: Logger;
  /** Maximum number of schedules of a user. */
  readonly perUser: number;
  /** Maximum time between a slot and the start of its run while nothing else is due, in ms. Default: 1 s. */
  readonly everyMs?: number;
  /** Called for each stored pause that no one requested. Called again for the same pause if its process dies then. */
  onPaused?(owner: Owner, schedule: Schedule): Promise<void>;
}

/** A schedule, and the version of its document. */
export interface VersionedSchedule {
  readonly schedule: Schedule;
  readonly version: string;
}

export interface WriteOptions {
  /** The version that the caller has read. A different one throws `precondition_failed`. */
  readonly seen?: string | undefined;
  readonly api_key?: string | undefined;
}

export interface Schedules extends Pick<DueWorker, "open" | "close"> {
  /**
   * Creates or replaces a schedule. While its times stay the same, a slot that is due is still started. Throws `invalid_request` for a
   * timing that cannot be read or has passed, `limit_exceeded`, `precondition_failed`.
   */
  put(owner: Owner, id: string, spec: ScheduleSpec, options?: WriteOptions): Promise<VersionedSchedule>;
  /** Throws `not_found`. */
  get(owner: Owner, id: string): Promise<VersionedSchedule>;
  /** Schedules of a user, by id. */
  list(
    owner: Owner,
    page: { readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Page<Schedule>>;
  /** Runs that it has started continue. Throws `not_found`, `precondition_failed`. */
  delete(owner: Owner, id: string, options?: WriteOptions): Promise<void>;
  /** Starts a run now, in addition to the schedule's slots and even while the schedule is paused. A known `key` returns the run that it has started. Throws as `startRun`. */
  run(owner: Owner, id: string, key: string | undefined): Promise<RunRecord>;
  /**
   * Makes the operator's schedules those of the agents file. Their ids begin with `operator-`; `put` and `delete` refuse these with
   * `invalid_request`.
   */
  writeFile(file: FileSchedules): Promise<void>;
  /** Deletes all schedules of a user. Returns how many. */
  deleteAll(owner: Owner): Promise<number>;
}

/** The caller opens and closes it. */
export function createSchedules(options: ScheduleOptions): Schedules {
  const { documents, logger, perUser, everyMs = EVERY_MS } = options;
  const worker = createDueWorker(
    documents,
    {
      kind: KIND,
      leaseMs: LEASE_MS,
      everyMs,
      atOnce: AT_ONCE,
      work: (each) => work(options, each),
    },
    logger,
  );

  const stored = async (owner: Owner, id: string): Promise<Document> => {
    const { found } = await documents.read(schedulesOf(owner), [id]);
    if (!found[0]) throw noSchedule(id);
    return found[0];
  };

  return {
    open: () => worker.open(),
    close: () => worker.close(),

    writeFile: (file) => writeFileSchedules(options, file),

    async put(owner, id, spec, { seen, api_key } = {}) {
      refuseFileId(id);
      checkTiming(spec);
      if (spec.thread !== "new" && !spec.keep_thread) throw staysAnyway(spec.thread);
      if (spec.agent !== undefined) checkAgent(options, spec.agent);
      const limit = { count: perUser, error: () => tooMany(perUser) };
      const at = { collection: schedulesOf(owner), keys: [id], limit };
      return change(documents, at, ({ found: [before], now, version }) => {
        checkVersion(id, before, seen);
        const record = recordAfter(before, { spec, api_key, now });
        const result = { schedule: scheduleOf(id, record), version };
        return { writes: [writeOf(id, before, record)], result };
      });
    },

    async get(owner, id) {
      const { body, version } = await stored(owner, id);
      return { schedule: scheduleOf(id, recordOf(body)), version };
    },

    async list(owner, page) {
      const { items, ...rest } = await documents.page(schedulesOf(owner), { order: "key", ...page });
      return { ...rest, items: items.map(({ key, body }) => scheduleOf(key, recordOf(body))) };
    },

    async delete(owner, id, { seen } = {}) {
      refuseFileId(id);
      return change(documents, { collection: schedulesOf(owner), keys: [id] }, ({ found: [before] }) => {
        if (!before) throw noSchedule(id);
        checkVersion(id, before, seen);
        return { writes: [{ key: id, seen: before.version, body: undefined }], result: undefined };
      });
    },

    async run(owner, id, key = newRunId()) {
      const record = recordOf((await stored(owner, id)).body);
      return startScheduled(options, owner, record.spec, runNow(id, record, key));
    },

    deleteAll: (owner) => retain(documents, schedulesOf(owner), { count: 0 }),
  };
}

/** Does what is due of a schedule, and writes what follows. A user who changes the schedule meanwhile is not overwritten. */
async function work(options: ScheduleOptions, claimed: ClaimedDocument): Promise<void> {
  const { documents } = options;
  const { collection, key: id, body } = claimed;
  const { tenant, user } = collection;
  const record = recordOf(body);
  if (user === undefined) return void (await finish(documents, claimed, { body }));
  const owner = { tenant, user };
  // A process died before it had told of this pause.
  if (record.next === undefined) return settle(options, owner, claimed, { record });
  const schedule = { owner, id, record };
  const now = Math.max(claimed.now, record.next);
  const chosen = await choose(options, schedule, { next: record.next, now });
  if ("record" in chosen) return settle(options, owner, claimed, chosen);
  const chosenBody = JSON.stringify(starting(record, chosen, now));
  // Undefined: a user has changed or deleted the schedule, or another process has it.
  const renewed = await renew(documents, claimed, { body: chosenBody, leaseMs: LEASE_MS });
  if (!renewed) return;
  const next = await fire(options, schedule, { ...chosen, now });
  await settle(options, owner, renewed, next);
  const { run } = next.record;
  if (run !== undefined && run !== record.run) await withdrawUnlessThere(options, owner, id, run);
}

/** A user who is deleted while a run is being started has no run afterwards. */
async function withdrawUnlessThere(
  { documents, runs }: ScheduleOptions,
  owner: Owner,
  id: string,
  { thread_id, run_id }: NonNullable<ScheduleRecord["run"]>,
): Promise<void> {
  const { found } = await documents.read(schedulesOf(owner), [id]);
  if (!found[0]) await withdrawRun(runs, owner, { thread_id, id: run_id });
}

/** Writes what follows, and tells of a pause. */
async function settle(
  { documents, logger, onPaused }: ScheduleOptions,
  owner: Owner,
  claimed: ClaimedDocument,
  { record, due }: NextRecord,
): Promise<void> {
  const id = claimed.key;
  const body = JSON.stringify(record);
  if (!record.pause || record.pause.reason === "requested")
    return void (await finish(documents, claimed, { body, due: due ?? null }));
  // Due again until all have heard of it.
  const stored = await renew(documents, claimed, { body, leaseMs: LEASE_MS });
  if (!stored) return;
  logger.info({ tenant: owner.tenant, schedule: id, reason: record.pause.reason }, "a schedule was paused");
  await onPaused?.(owner, scheduleOf(id, record));
  await finish(documents, stored, { body });
}

function checkAgent({ runs }: ScheduleOptions, name: string): void {
  try {
    runs.agents.find(name);
  } catch (error) {
    throw hasCode(error, "not_found") ? new AppError("invalid_request", `agent: ${error.message}`) : error;
  }
}

/** Throws `precondition_failed`. */
function checkVersion(id: string, document: Document | undefined, seen: string | undefined): void {
  if (seen === undefined || seen === document?.version) return;
  throw new AppError(
    "precondition_failed",
    `Schedule \`${id}\` is not at the version in \`If-Match\`. Read it again, then decide.`,
  );
}

const noSchedule = (id: string) => new AppError("not_found", `There is no schedule \`${id}\`.`);

const staysAnyway = (thread: string) =>
  new AppError(
    "invalid_request",
    `keep_thread: all runs continue thread \`${thread}\`, so it stays. Leave \`keep_thread\` out, or use \`thread: new\`.`,
  );

const tooMany = (limit: number) =>
  new AppError("limit_exceeded", `There are already ${limit} schedules. Delete one first.`, {
    details: { limit },
  });
