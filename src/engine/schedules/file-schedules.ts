// The operator's schedules, defined in the agents file. Every process writes them at startup and after a reload. They
// have fixed ids in the store, so writing the same file twice changes nothing.

import { z } from "zod";
import { change, type Documents } from "../../agent/core/documents.ts";
import { AppError, hasCode } from "../../agent/core/errors.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Owner } from "../../protocol/ids.ts";
import { recordOf, type ScheduleRecord, ScheduleSpec } from "./schedule.ts";
import { schedulesOf, writeOf } from "./stored.ts";
import { checkTiming } from "./timing.ts";
import { recordAfter } from "./written.ts";

/** The prefix of the operator's schedule ids. Requests cannot write or delete these schedules. */
const PREFIX = "operator-";

const Name = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,48}$/, "must be 1 to 48 characters from A-Z, a-z, 0-9, _ and -");

const OwnerName = z
  .string()
  .regex(/^[^\s\p{C}]{1,256}$/u, "must be 1 to 256 characters, without spaces or invisible characters");

const FileSchedule = z
  .strictObject({
    ...ScheduleSpec.shape,
    tenant: OwnerName.default("default").describe("Tenant of the runs."),
    user: OwnerName.describe("User whose permissions, quotas and budgets the runs use."),
  })
  .superRefine((schedule, context) => {
    try {
      checkTiming(schedule);
    } catch (error) {
      const [, field, message] = /^(\w+): (.*)$/s.exec(AppError.from(error).message) ?? [];
      const issue = { code: "custom" as const, path: field ? [field] : [] };
      context.addIssue({ ...issue, message: message ?? AppError.from(error).message });
    }
    if (schedule.thread !== "new" && !schedule.keep_thread)
      context.addIssue({ code: "custom", path: ["keep_thread"], message: "needs `thread: new`" });
  });

export const FileSchedules = z
  .record(Name, FileSchedule)
  .refine((all) => Object.keys(all).length <= 1_000, "must contain at most 1000 schedules")
  .describe(
    "The operator's schedules by name, with the fields of `PUT /schedules/{schedule_id}` and the user of the runs.",
  );
export type FileSchedules = z.infer<typeof FileSchedules>;

/** Throws `invalid_request` for the id of a schedule that requests cannot change. */
export function refuseFileId(id: string): void {
  if (!id.startsWith(PREFIX)) return;
  throw new AppError(
    "invalid_request",
    `Schedule \`${id}\`: ids that begin with \`${PREFIX}\` are reserved for the schedules in the operator's agents file.`,
  );
}

interface FilePlace extends Owner {
  readonly id: string;
}

/** The schedules in the most recent file: one document for the whole deployment. */
const INDEX = { kind: "file_schedules" };
const KEY = "agents";
const Places = z.array(z.object({ tenant: z.string(), user: z.string(), id: z.string() }));

/**
 * Replaces the operator's stored schedules with those in the file. Several processes can do this at once; if one dies
 * midway, the next one completes the work. A schedule with no remaining run times is skipped and logged.
 */
export async function writeFileSchedules(
  { documents, logger }: { readonly documents: Documents; readonly logger: Pick<Logger, "warn"> },
  file: FileSchedules,
): Promise<void> {
  const wanted = Object.entries(file).map(([name, { tenant, user, ...spec }]) => ({
    ...{ tenant, user, spec },
    id: PREFIX + name,
  }));
  const before = await placesOf(documents);
  if (before.length === 0 && wanted.length === 0) return;
  const isWanted = (place: FilePlace) => wanted.some((each) => isSame(each, place));
  const removed = before.filter((place) => !isWanted(place));
  // Adds all schedules to the index first, so that schedules written by a process that dies can still be found.
  // Processes with a different file add their own schedules.
  const addWanted = () =>
    changePlaces(documents, async (found) => [...found, ...wanted.filter(isNoneOf(found))]);
  await addWanted();
  for (const each of wanted) {
    await writeOne(documents, each).catch((error: unknown) => {
      if (!hasCode(error, "invalid_request")) throw error;
      logger.warn(
        { schedule: each.id, reason: error.message },
        "a schedule in the agents file starts no runs",
      );
    });
  }
  for (const each of removed) await deleteOne(documents, each);
  // A process that still uses the previous file may have written a removed schedule again.
  await changePlaces(documents, async (found) => {
    const written = await Promise.all(
      found.map(async (each) => isWanted(each) || (await exists(documents, each))),
    );
    return found.filter((_, at) => written[at]);
  });
  await addWanted();
}

const isNoneOf = (places: readonly FilePlace[]) => (place: FilePlace) =>
  !places.some((each) => isSame(each, place));

async function exists(documents: Documents, { id, ...owner }: FilePlace): Promise<boolean> {
  return (await documents.read(schedulesOf(owner), [id])).found[0] !== undefined;
}

const isSame = (one: FilePlace, other: FilePlace) =>
  one.tenant === other.tenant && one.user === other.user && one.id === other.id;

async function placesOf(documents: Documents): Promise<readonly FilePlace[]> {
  const [found] = (await documents.read(INDEX, [KEY])).found;
  return found ? Places.parse(JSON.parse(found.body)) : [];
}

function changePlaces(
  documents: Documents,
  next: (found: readonly FilePlace[]) => Promise<readonly FilePlace[]>,
): Promise<void> {
  return change(documents, { collection: INDEX, keys: [KEY] }, async ({ found: [found] }) => {
    const places = await next(found ? Places.parse(JSON.parse(found.body)) : []);
    const body = JSON.stringify(places.map(({ tenant, user, id }) => ({ tenant, user, id })));
    if (found?.body === body) return { result: undefined };
    return { writes: [{ key: KEY, seen: found?.version, body }], result: undefined };
  });
}

function writeOne(documents: Documents, { id, spec, ...owner }: FilePlace & { readonly spec: ScheduleSpec }) {
  return change(documents, { collection: schedulesOf(owner), keys: [id] }, ({ found: [before], now }) => {
    const old = before && recordOf(before.body);
    if (old && isUnchanged(old, spec)) return { result: undefined };
    const record: ScheduleRecord = { ...recordAfter(before, { spec, now }), from_file: true };
    return { writes: [writeOf(id, before, record)], result: undefined };
  });
}

/**
 * A schedule that Skein paused resumes after a restart or a reload, because the operator may have fixed the problem.
 */
const isUnchanged = ({ spec, pause }: ScheduleRecord, next: ScheduleSpec) =>
  (pause === undefined || next.paused) && JSON.stringify(spec) === JSON.stringify(next);

function deleteOne(documents: Documents, { id, ...owner }: FilePlace): Promise<void> {
  return change(documents, { collection: schedulesOf(owner), keys: [id] }, ({ found: [before] }) =>
    before
      ? { writes: [{ key: id, seen: before.version, body: undefined }], result: undefined }
      : { result: undefined },
  );
}
