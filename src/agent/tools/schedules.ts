// Tools that let an agent start runs later. They manage schedules of the user that the agent works for.

import { z } from "zod";
import { firstChars } from "../../lib/text.ts";
import type { ToolCall } from "../core/message.ts";
import { askFor } from "../core/open-interrupts.ts";
import { CALLS_ARE_DECIDED, type OwnSchedules } from "../core/own-schedules.ts";
import type { Stream } from "../core/stream.ts";
import {
  type DoneResult,
  defineTool,
  denied,
  done,
  failed,
  interrupted,
  type Run,
  type Tool,
  type ToolResult,
} from "../core/tool.ts";

const MAX_INPUT_CHARS = 10_000;
const MAX_ASKED_CHARS = 600;
const MAX_LISTED_CHARS = 300;

const WHEN = {
  cron: z
    .string()
    .max(256)
    .optional()
    .describe(
      "For repeated runs: minute, hour, day of the month, month, day of the week. `0 9 * * MON-FRI` is every working day at 9.",
    ),
  at: z.iso
    .datetime({ offset: true })
    .optional()
    .describe("For a single run: its time with an offset, such as 2030-05-04T10:00:00+02:00."),
  timezone: z.string().max(256).default("UTC").describe("IANA time zone of `cron`, such as Europe/Berlin."),
  until: z.iso
    .datetime({ offset: true })
    .optional()
    .describe("Time after which no run starts, with an offset."),
};

/**
 * Creates the tools. Each call reads `schedules` again, because the store opens after the tools are created.
 */
export const scheduleTools = (schedules: () => OwnSchedules): readonly Tool[] => [
  creation(schedules),
  listing(schedules),
  deletion(schedules),
];

const creation = (schedules: () => OwnSchedules): Tool =>
  defineTool({
    name: "schedule_create",
    description:
      "Schedules later runs of yourself, once (`at`) or repeatedly (`cron`). Call schedule_list first to avoid creating the same schedule twice.",
    parameters: z.object({
      ...WHEN,
      input: z
        .string()
        .trim()
        .min(1)
        .max(MAX_INPUT_CHARS)
        .describe(
          "The message that starts each run. Describe the whole task, because the run has no other information.",
        ),
      thread: z
        .enum(["new", "this"])
        .default("new")
        .describe("`new`: each run starts a new conversation. `this`: the runs continue this conversation."),
    }),
    annotations: { idempotent: true, namedOnly: true },
    describeCall: (wanted) => `start runs by itself ${timesOf(wanted)}, with this message: ${wanted.input}`,
    async *execute(wanted, call, run) {
      if (wanted.thread === "this" && run.lineage)
        return failed("A subagent cannot continue the user's conversation. Use `thread`: `new`.");
      const told = firstChars(wanted.input, MAX_ASKED_CHARS);
      const where = wanted.thread === "this" ? " in this conversation" : "";
      const question = `May the agent start runs by itself ${timesOf(wanted)}${where}, with this message? ${told}`;
      return (
        (yield* refusedBy(question, call, run)) ??
        done(JSON.stringify(await schedules().create(run, call.id, wanted)))
      );
    },
  });

const listing = (schedules: () => OwnSchedules): Tool =>
  defineTool({
    name: "schedule_list",
    description: "Lists the schedules that you have created for this user, with their next times.",
    parameters: z.object({}),
    annotations: { readOnly: true, category: "read", requiresPermission: false, namedOnly: true },
    async execute(_, _call, run) {
      const all = await schedules().list(run);
      return JSON.stringify(
        all.map((each) => ({ ...each, input: firstChars(each.input, MAX_LISTED_CHARS) })),
      );
    },
  });

const deletion = (schedules: () => OwnSchedules): Tool =>
  defineTool({
    name: "schedule_delete",
    description: "Deletes a schedule that you have created. Runs in progress continue.",
    parameters: z.object({ id: z.string().max(64).describe("Id of the schedule, from schedule_list.") }),
    annotations: { idempotent: true, destructive: true, namedOnly: true },
    describeCall: ({ id }) => `delete the schedule \`${id}\``,
    async *execute({ id }, call, run) {
      const refusal = yield* refusedBy(`May the agent delete its schedule \`${id}\`?`, call, run);
      if (refusal) return refusal;
      const isDeleted = await schedules().delete(run, id);
      return isDeleted
        ? done(`Schedule \`${id}\` is deleted.`)
        : failed(`You have no schedule \`${id}\`. schedule_list shows your schedules.`);
    },
  });

/**
 * Returns the result of a call that a person has denied or has not decided on yet. Returns undefined if the call may start.
 * Permissions replace this question.
 */
async function* refusedBy(prompt: string, call: ToolCall, run: Run): Stream<ToolResult | undefined> {
  if (run.values.has(CALLS_ARE_DECIDED)) return undefined;
  const answer = yield* askFor({ call, kind: "approval", prompt, options: ["approve", "deny"] }, run);
  if (!answer) return interrupted();
  if (answer.decision === "approve") return undefined;
  return deniedBecause(answer.message);
}

const deniedBecause = (words = "The user does not allow it. Do not ask again."): DoneResult => denied(words);

function timesOf({ cron, at, timezone, until }: z.output<z.ZodObject<typeof WHEN>>): string {
  const times = cron === undefined ? `once, at ${at}` : `at the times \`${cron}\` (${timezone})`;
  return until === undefined ? times : `${times} until ${until}`;
}
