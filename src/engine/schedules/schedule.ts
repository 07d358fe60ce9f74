// The three forms of a schedule: as the user writes it, as the store keeps it, and as the API returns it.

import { createHash } from "node:crypto";
import { z } from "zod";
import { userMessage } from "../../agent/core/message.ts";
import { Metadata } from "../../agent/core/records.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { Id } from "../../protocol/ids.ts";
import type { RunCommand } from "../runs/start.ts";
import { slotsAfter, type Timing } from "./timing.ts";

/** A schedule's id is shorter than other ids, because the thread ids of its runs contain it. */
export const ScheduleId = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/, "must be 1 to 64 characters from A-Z, a-z, 0-9, _ and -");

const Time = z.iso.datetime({ offset: true });

/** A run's metadata can have 32 keys, and two of them are added here. */
const MAX_METADATA = 30;

export const ScheduleSpec = z
  .strictObject({
    cron: z
      .string()
      .optional()
      .describe(
        "When to start runs, as five fields: minute, hour, day of the month, month, day of the week. `0 9 * * MON-FRI` means 9:00, Monday to Friday.",
      ),
    at: Time.optional().describe("Time of a single run, with its UTC offset. Use either `at` or `cron`."),
    timezone: z.string().default("UTC").describe("IANA time zone for `cron`, such as `Europe/Berlin`."),
    agent: z
      .string()
      .max(256)
      .optional()
      .describe("Agent that executes the runs. Default: the thread's agent, otherwise the default agent."),
    input: z.string().trim().min(1).max(100_000).describe("User message that each run begins with."),
    thread: z
      .union([z.literal("new"), Id])
      .default("new")
      .describe(
        "`new`: each run gets its own thread. Otherwise, the id of the thread that all runs continue.",
      ),
    keep_thread: z
      .boolean()
      .default(true)
      .describe(
        "Keeps the new threads. With `false`, each thread is deleted after its run, like a temporary thread of `POST /runs`. Only with `thread: new`.",
      ),
    overlap: z
      .enum(["skip", "queue", "allow"])
      .default("skip")
      .describe(
        "Action if the previous run has not ended or is waiting for an answer: skip the slot, wait until the run ends, or start another run alongside it.",
      ),
    catch_up: z
      .enum(["none", "latest", "all"])
      .default("latest")
      .describe(
        "Action on slots missed by more than a minute because the server was down: skip all, start a run for the most recent, or start one for each.",
      ),
    until: Time.optional().describe("Time after which the schedule starts no more runs."),
    questions: z
      .enum(["wait", "deny"])
      .default("wait")
      .describe(
        "Action if a run asks a question: wait for an answer as the agent's `interrupts` configure, or deny it because no one is available.",
      ),
    metadata: Metadata.refine(
      (metadata) => Object.keys(metadata).length <= MAX_METADATA,
      `must have at most ${MAX_METADATA} keys`,
    )
      .default({})
      .describe("Metadata of the runs, at most 30 keys. The server adds `schedule` and `scheduled_for`."),
    paused: z.boolean().default(false).describe("While true, the schedule starts no runs."),
  })
  .meta({ id: "ScheduleSpec" });
export type ScheduleSpec = z.infer<typeof ScheduleSpec>;

const PauseReason = z.enum(["requested", "credentials_ended", "start_refused"]);
const SlotOutcome = z.enum(["started", "skipped", "failed"]);

const LastSlot = z.object({
  scheduled_for: z.iso.datetime(),
  outcome: SlotOutcome.describe(
    "`skipped`: the previous run had not ended, or the slot was missed. `failed`: the start was refused.",
  ),
  message: z.string().optional().describe("Why no run was started."),
});

const PendingSlot = z.object({
  scheduled_for: z.iso.datetime(),
  since: z.iso.datetime(),
  message: z.string().describe("Why the slot's run has not started."),
});

const ScheduledRun = z.object({ thread_id: z.string(), run_id: z.string(), scheduled_for: z.iso.datetime() });

export const Schedule = z
  .object({
    id: z.string(),
    ...ScheduleSpec.shape,
    status: z
      .enum(["active", "paused", "completed"])
      .describe("`completed`: no further time matches, or `until` has passed."),
    pause: z
      .object({
        reason: PauseReason,
        message: z.string(),
        since: z.iso.datetime(),
      })
      .optional()
      .describe("Why the schedule is paused. Send it again with `paused: false` to continue."),
    next_runs: z.array(z.iso.datetime()).describe("The next times, at most five."),
    last_slot: LastSlot.optional().describe("The most recent slot, and whether it started a run."),
    pending_slot: PendingSlot.optional().describe("A slot that is due but has not started its run yet."),
    last_run: ScheduledRun.optional().describe("The most recent run that the schedule started."),
    from_file: z
      .literal(true)
      .optional()
      .describe("True if the operator's agents file defines the schedule. Requests cannot change it."),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: "Schedule" });
export type Schedule = z.infer<typeof Schedule>;

/** The stored form of a schedule. Times are in milliseconds since 1970. */
export interface ScheduleRecord {
  readonly spec: ScheduleSpec;
  /** The first slot that is not done. If absent, the schedule starts no more runs unless it is changed. */
  readonly next?: number | undefined;
  /** Set if the start of `next` was refused or waits for the previous run. */
  readonly retry?: PendingStart | undefined;
  readonly pause?:
    | { readonly reason: z.infer<typeof PauseReason>; readonly message: string; readonly since: number }
    | undefined;
  readonly slot?: SlotRecord | undefined;
  /** The most recent run that a slot has started. */
  readonly run?: { readonly thread_id: string; readonly run_id: string; readonly slot: number } | undefined;
  /** The id of the API key that wrote the schedule. */
  readonly api_key?: string | undefined;
  readonly from_file?: true | undefined;
  readonly created: number;
  readonly updated: number;
}

/** A slot that has been processed, whether or not its run was started. */
export interface SlotRecord {
  readonly at: number;
  readonly outcome: z.infer<typeof SlotOutcome>;
  readonly message?: string;
}

/** Why the run of `next` has not started, since when, and how many attempts there were. */
export interface PendingStart {
  /**
   * `starting`: a process has chosen the slot and is starting its run. If that process dies, the next process starts
   * the same run.
   */
  readonly cause: "waiting" | "refused" | "missing" | "starting";
  readonly since: number;
  readonly attempts: number;
  readonly message: string;
}

/** Not validated, because only this room writes records. */
export const recordOf = (body: string) => JSON.parse(body) as ScheduleRecord;

const NEXT_RUNS = 5;

/** Returns the next times of a schedule, at most five. `now` is in milliseconds since 1970. */
export const nextTimes = (timing: Timing, now: number): string[] =>
  slotsAfter(timing, now, NEXT_RUNS).map(iso);

export function scheduleOf(id: string, record: ScheduleRecord): Schedule {
  const { spec, next, pause, slot, run, from_file, created, updated } = record;
  const following = next === undefined ? [] : [next, ...slotsAfter(spec, next, NEXT_RUNS - 1)];
  const unpaused = next === undefined ? "completed" : "active";
  return {
    id,
    ...spec,
    status: pause ? "paused" : unpaused,
    next_runs: following.map(iso),
    created_at: iso(created),
    updated_at: iso(updated),
    ...omitUndefined({
      from_file,
      pause: pause && { ...pause, since: iso(pause.since) },
      pending_slot: pendingOf(record),
      last_slot: slot && {
        scheduled_for: iso(slot.at),
        ...omitUndefined({ outcome: slot.outcome, message: slot.message }),
      },
      last_run: run && { thread_id: run.thread_id, run_id: run.run_id, scheduled_for: iso(run.slot) },
    }),
  };
}

function pendingOf({ next, retry }: ScheduleRecord): z.infer<typeof PendingSlot> | undefined {
  if (next === undefined || !retry) return undefined;
  return { scheduled_for: iso(next), since: iso(retry.since), message: retry.message };
}

export const iso = (time: number) => new Date(time).toISOString();

/** Returns true if the threads of the schedule's runs are deleted after the runs. */
export const isTemporary = ({ thread, keep_thread }: ScheduleSpec): boolean =>
  thread === "new" && keep_thread === false;

/** Returns the run of a slot. Starting the same slot of a schedule again always returns the same run. */
export function runOfSlot(id: string, record: ScheduleRecord, slot: number): RunCommand {
  const scheduled_for = iso(slot);
  const command = commandOf(id, record, scheduled_for.replaceAll(/[-:]|\.\d+/g, ""));
  return {
    ...command,
    metadata: { ...command.metadata, scheduled_for },
    idempotency_key: `schedule:${id}:${scheduled_for}`,
  };
}

/** Returns a run that starts independently of the slots. Calls with the same key always return the same run. */
export function runNow(id: string, record: ScheduleRecord, key: string): RunCommand {
  const name = createHash("sha256").update(key).digest("hex").slice(0, 16);
  return { ...commandOf(id, record, name), idempotency_key: `schedule:${id}:now:${name}` };
}

/** `name` becomes the name of the run's thread, unless all runs use the same thread. */
function commandOf(id: string, { spec, api_key }: ScheduleRecord, name: string) {
  const { agent, input, thread, questions, metadata } = spec;
  const unattended = questions === "deny" ? (true as const) : undefined;
  return {
    thread_id: thread === "new" ? `${id}_${name}` : thread,
    request: { input: [userMessage(input)], settings: {}, ...omitUndefined({ api_key, unattended }) },
    metadata: { ...metadata, schedule: id },
    on_busy: "enqueue" as const,
    ...omitUndefined({ agent }),
  };
}
