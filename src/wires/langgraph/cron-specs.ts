// Converts between crons and schedules: the body of a request becomes a schedule, and a schedule becomes a cron.

import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { textOf } from "../../agent/core/message.ts";
import { type Schedule, ScheduleSpec } from "../../engine/schedules/schedule.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { messageIn, RunBody, refuseUnsupported, sentMessages } from "./input.ts";
import { scalarsIn } from "./modes.ts";
import { assistantIdOf } from "./resources/assistants.ts";

/** Other fields are ignored. */
const Fields = RunBody.pick({
  ...{ input: true, metadata: true, multitask_strategy: true },
  ...{ interrupt_before: true, interrupt_after: true, webhook: true },
}).extend({
  timezone: z.string().max(64).nullish(),
  end_time: z.iso.datetime({ offset: true, local: true }).nullish(),
  enabled: z.boolean().nullish(),
  on_run_completed: z
    .enum(["delete", "keep"])
    .nullish()
    .describe("For a cron without a thread: keep or delete the threads of its runs. Default: `delete`."),
});
const Line = z.string().max(256);
export const CronBody = Fields.extend({ schedule: Line, assistant_id: RunBody.shape.assistant_id });
export const CronChanges = Fields.extend({ schedule: Line.nullish() });
type CronChanges = z.infer<typeof CronChanges>;

export const Cron = z
  .looseObject({ cron_id: z.string(), schedule: z.string() })
  .describe("The schedule, with its next time and the payload of its runs.");
export type Cron = z.infer<typeof Cron>;

/** Returns the defaults of a cron. Runs on the same thread wait for each other. */
export const newSpec = (agent: string, thread: string): ScheduleSpec =>
  ScheduleSpec.parse({
    ...{ agent, thread, input: "-", keep_thread: thread !== "new" },
    overlap: thread === "new" ? "allow" : "queue",
  });

const OVERLAPS = { reject: "skip", enqueue: "queue" } as const;

/** Returns the spec with the fields of the body. Throws `invalid_request` for options that schedules do not support. */
export function changed(before: ScheduleSpec, body: CronChanges): ScheduleSpec {
  refuseUnsupported(body);
  const { schedule, timezone, end_time, enabled, metadata, multitask_strategy, on_run_completed } = body;
  if (multitask_strategy === "interrupt" || multitask_strategy === "rollback")
    throw refused("multitask_strategy: crons support `enqueue` and `reject`.");
  return {
    ...before,
    ...omitUndefined({
      cron: schedule ?? undefined,
      timezone: timezone ?? undefined,
      until: end_time ? inUtc(end_time) : undefined,
      input: body.input ? inputOf(body) : undefined,
      metadata: metadata ? { ...before.metadata, ...scalarsIn(metadata) } : undefined,
      overlap: multitask_strategy ? OVERLAPS[multitask_strategy] : undefined,
    }),
    paused: enabled === undefined || enabled === null ? before.paused : !enabled,
    keep_thread:
      on_run_completed && before.thread === "new" ? on_run_completed === "keep" : before.keep_thread,
  };
}

/** Returns the input that each run begins with. */
export function inputOf(body: Pick<CronChanges, "input">): string {
  const [first, ...more] = sentMessages({ input: body.input }).map(messageIn);
  if (first?.role !== "user" || more.length > 0)
    throw refused("input.messages: a cron needs one message of type `human`.");
  const text = textOf(first.content);
  if (typeof first.content === "string" || first.content.every(({ type }) => type === "text")) return text;
  throw refused("input.messages: the message of a cron is a text.");
}

/** LangGraph's times without an offset are in UTC. */
const inUtc = (time: string) =>
  new Date(/(?:Z|[+-]\d\d:?\d\d)$/.test(time) ? time : `${time}Z`).toISOString();

const refused = (message: string) => new AppError("invalid_request", message);

export const specOf = (schedule: Schedule): ScheduleSpec => ScheduleSpec.strip().parse(schedule);

/** Returns undefined for a schedule that runs once, because a cron cannot represent it. */
export function cronOf(
  schedule: Schedule,
  { user, agent }: { user: string; agent: string },
): Cron | undefined {
  const { id, cron, timezone, thread, keep_thread, until, status, next_runs, input, metadata } = schedule;
  if (cron === undefined) return undefined;
  const assistant_id = assistantIdOf(schedule.agent ?? agent);
  return {
    ...{ cron_id: id, assistant_id, schedule: cron, timezone, user_id: user, metadata },
    thread_id: thread === "new" ? null : thread,
    end_time: until ?? null,
    enabled: status !== "paused",
    next_run_date: next_runs[0] ?? null,
    payload: { assistant_id, input: { messages: [{ type: "human", content: input }] } },
    ...{ created_at: schedule.created_at, updated_at: schedule.updated_at },
    ...(thread === "new" ? { on_run_completed: keep_thread ? "keep" : "delete" } : {}),
  };
}
