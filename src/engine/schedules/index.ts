// Schedules start runs on their own, one per slot. Any live process can start them.

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

/**
 * This is longer than it takes to start a run, and shorter than a slot's grace period. Another process can therefore
 * start the run before the slot counts as missed.
 */
const LEASE_MS = 20_000;
const EVERY_MS = 1_000;
const AT_ONCE = 16;

export interface ScheduleOptions extends FireServices {
  readonly documents: Documents;
  readonly logger: Logger;
  /** The maximum number of schedules per user. */
  readonly perUser: number;
  /**
   * The maximum time between a slot and the start of its run when nothing else is due, in milliseconds. Default: 1000.
   */
  readonly everyMs?: number;
  /**
   * Called for each stored pause that the user did not request. Called again for the same pause if the process dies
   * during the call.
   */
  onPaused?(owner: Owner, schedule: Schedule): Promise<void>;
}

/** A schedule and the version of its document. */
export interface VersionedSchedule {
  readonly schedule: Schedule;
  readonly version: string;
}

export interface WriteOptions {
  /** The version that the caller has read. If it is no longer current, the call throws `precondition_failed`. */
  readonly seen?: string | undefined;
  readonly api_key?: string | undefined;
}

export interface Schedules extends Pick<DueWorker, "open" | "close"> {
  /**
   * Creates or replaces a schedule. If the schedule's times do not change, a slot that is already due still starts.
   * Throws `invalid_request` for a timing that is invalid or in the past, `limit_exceeded` or `precondition_failed`.
   */
  put(owner: Owner, id: string, spec: ScheduleSpec, options?: WriteOptions): Promise<VersionedSchedule>;
  /** Returns a schedule. Throws `not_found`. */
  get(owner: Owner, id: string): Promise<VersionedSchedule>;
  /** Returns a user's schedules, sorted by id. */
  list(
    owner: Owner,
    page: { readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Page<Schedule>>;
  /** Deletes the schedule. Runs that the schedule has started continue. Throws `not_found` or `precondition_failed`. */
  delete(owner: Owner, id: string, options?: WriteOptions): Promise<void>;
  /**
   * Starts a run now, in addition to the schedule's slots and even if the schedule is paused. If `key` was used before,
   * returns the run that it started. Throws the same errors as `startRun`.
   */
  run(owner: Owner, id: string, key: string | undefined): Promise<RunRecord>;
  /**
   * Replaces the operator's schedules with those in the agents file. Their ids begin with `operator-`; `put` and
   * `delete` refuse such ids with `invalid_request`.
   */
  writeFile(file: FileSchedules): Promise<void>;
  /** Deletes all schedules of a user. Returns the number deleted. */
  deleteAll(owner: Owner): Promise<number>;
}

/** The caller must open and close it. */
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

/**
 * Processes a due schedule and writes its next record. If a user changes the schedule at the same time, the user's
 * change wins.
 */
async function work(options: ScheduleOptions, claimed: ClaimedDocument): Promise<void> {
  const { documents } = options;
  const { collection, key: id, body } = claimed;
  const { tenant, user } = collection;
  const record = recordOf(body);
  if (user === undefined) return void (await finish(documents, claimed, { body }));
  const owner = { tenant, user };
  // A process died before it reported this pause.
  if (record.next === undefined) return settle(options, owner, claimed, { record });
  const schedule = { owner, id, record };
  const now = Math.max(claimed.now, record.next);
  const chosen = await choose(options, schedule, { next: record.next, now });
  if ("record" in chosen) return settle(options, owner, claimed, chosen);
  const chosenBody = JSON.stringify(starting(record, chosen, now));
  // Undefined means that a user has changed or deleted the schedule, or that another process has claimed it.
  const renewed = await renew(documents, claimed, { body: chosenBody, leaseMs: LEASE_MS });
  if (!renewed) return;
  const next = await fire(options, schedule, { ...chosen, now });
  await settle(options, owner, renewed, next);
  const { run } = next.record;
  if (run !== undefined && run !== record.run) await withdrawUnlessThere(options, owner, id, run);
}

/**
 * Withdraws the run if the schedule no longer exists, for example because its user was deleted while the run was
 * starting.
 */
async function withdrawUnlessThere(
  { documents, runs }: ScheduleOptions,
  owner: Owner,
  id: string,
  { thread_id, run_id }: NonNullable<ScheduleRecord["run"]>,
): Promise<void> {
  const { found } = await documents.read(schedulesOf(owner), [id]);
  if (!found[0]) await withdrawRun(runs, owner, { thread_id, id: run_id });
}

/** Writes the next record and reports a pause. */
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
  // Stays due until the pause has been reported.
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

/** Throws `precondition_failed` if `seen` is not the current version. */
function checkVersion(id: string, document: Document | undefined, seen: string | undefined): void {
  if (seen === undefined || seen === document?.version) return;
  throw new AppError(
    "precondition_failed",
    `Schedule \`${id}\` does not have the version in \`If-Match\`. Read it again, then decide.`,
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
