// Request and reply schemas beyond the types of core. All of them are in openapi.yaml.

import { z } from "zod";
import { Message, Part } from "../../agent/core/message.ts";
import { ModelSettings } from "../../agent/core/model.ts";
import { ClientTool, Metadata, RunRecord, Thread } from "../../agent/core/records.ts";
import { boundedList } from "../../lib/bounded-schemas.ts";
import { Id } from "../../protocol/ids.ts";
import { Answer } from "../../protocol/interrupt.ts";
import type { PhaseName } from "../../protocol/phase.ts";

export const Problem = z
  .object({
    type: z.url().describe("Address of the section on the code in the documentation."),
    title: z.string(),
    status: z.int(),
    code: z.string(),
    detail: z.string(),
    instance: z.string(),
    request_id: z
      .string()
      .optional()
      .describe("As in `X-Request-Id` and in the server's log. Absent when the request could not be read."),
    details: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: "Problem" });

export const ThreadParams = z.object({ thread_id: Id });
export const RunParams = z.object({ thread_id: Id, run_id: Id });
export const RequestParams = RunParams.extend({ n: z.coerce.number().int().min(1).max(1_000_000) });

// Loose, because the validated object replaces `request.headers`.
export const IdempotencyKey = z.looseObject({ "idempotency-key": z.string().min(1).max(255).optional() });

const notBlank = (text: string) => text.trim() !== "";
const Text = z.string().refine(notBlank, "must not be empty");

export const InputMessage = z
  .strictObject({
    role: z.enum(["user", "system"], { error: "may only be `user` or `system`" }),
    content: z.union([Text, boundedList(Part, 64).min(1, "must not be empty")], {
      error: "must be a string or a list of parts",
    }),
  })
  .meta({ id: "InputMessage" });

const GivenCall = z
  .strictObject({
    name: z.string().min(1).max(256).describe("A tool of the agent, or one that the run brings."),
    args: z.record(z.string(), z.unknown()).default({}),
  })
  .meta({ id: "GivenCall" });

const ClientTools = boundedList(ClientTool, 64)
  .min(1)
  .optional()
  .describe("Tools that the client executes: a call interrupts the run, and `resume` brings its result.");

const countOf = (values: readonly unknown[]) => values.filter((value) => value !== undefined).length;

export const StartRunBody = z
  .strictObject({
    agent: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .describe("Default: the thread's agent, else the first one configured."),
    input: Text.optional().describe("Short for one user message."),
    messages: boundedList(InputMessage, 100).min(1).optional(),
    continue: z
      .literal(true)
      .optional()
      .describe(
        "Instead of a message: the model continues the thread's last answer, which was cut off (`incomplete`), or answers a thread that ends with a message of a user or the result of a call.",
      ),
    calls: boundedList(GivenCall, 64)
      .min(1)
      .optional()
      .describe(
        "The run executes these calls first, as if its model had made them, and then asks the model. Alone, or after the messages.",
      ),
    model: z.string().min(1).max(256).optional().describe("`provider:model` instead of the agent's own."),
    ...ModelSettings.shape,
    output_schema: z
      .record(z.string(), z.unknown())
      .optional()
      .describe(
        "JSON Schema (2020-12) of an object: the final answer is JSON of it, which `done` and the run have as `output`. Default: the agent's own.",
      ),
    tools: ClientTools,
    metadata: Metadata.default({}),
    replaces: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .describe(
        "The id of a user message: the run replaces it and all later messages, which are kept as a branch.",
      ),
    on_busy: z
      .enum(["reject", "enqueue", "interrupt"])
      .default("reject")
      .describe("If the thread has an active run: answer 409, wait for it, or cancel it and start next."),
    on_disconnect: z
      .enum(["continue", "cancel"])
      .default("continue")
      .describe("What happens to the run if the client disconnects early."),
    background: z
      .boolean()
      .default(false)
      .describe("Answer 202 at once; follow the run's events at `Location`."),
  })
  .refine(
    ({ input, messages, continue: goesOn, calls }) =>
      countOf([input, messages, goesOn]) ===
      (calls && countOf([input, messages]) === 0 ? countOf([goesOn]) : 1),
    { error: "give one of `input`, `messages` and `continue`, or `calls`" },
  )
  .refine(({ continue: goesOn, calls }) => !goesOn || calls === undefined, {
    path: ["calls"],
    error: "cannot come with `continue`: leave `continue` out, and the run continues with the calls",
  })
  .refine(({ continue: goesOn, replaces }) => !goesOn || replaces === undefined, {
    path: ["continue"],
    error: "replaces no message: leave `replaces` out",
  })
  .refine(({ replaces, on_busy }) => replaces === undefined || on_busy === "reject", {
    path: ["replaces"],
    error: "needs `on_busy: reject`: otherwise messages of the active run would be deleted unseen",
  })
  .meta({ id: "StartRun" });
export type StartRunBody = z.infer<typeof StartRunBody>;

export const ResumeBody = z
  .strictObject({
    answers: boundedList(Answer, 64).min(1).describe("Answers to some or all open interrupts."),
    tools: ClientTools,
    on_disconnect: StartRunBody.shape.on_disconnect,
    background: StartRunBody.shape.background,
  })
  .meta({ id: "ResumeRun" });

export const Phase = z
  .object({
    name: z.enum([
      ...["idle", "processing", "calling_model", "executing_tool", "waiting_for_subagent"],
      ...["waiting_for_permission", "waiting_for_answer", "waiting_for_tool"],
    ] as const satisfies readonly PhaseName[]),
    of: z.array(z.string()).optional().describe("The tools or subagents."),
  })
  .meta({ id: "Phase" });

const Output = z
  .record(z.string(), z.unknown())
  .optional()
  .describe("The answer of a run with an `output_schema`, while its events are kept.");

export const RunNow = RunRecord.extend({
  phase: Phase.optional().describe("What the run is doing, until it has ended."),
  output: Output,
}).meta({ id: "RunNow" });

export const FinishedRun = RunRecord.extend({
  messages: z.array(Message).describe("The messages that the run added to the thread, its input included."),
  output: Output,
}).meta({ id: "FinishedRun" });

export const SteerBody = z.union([
  z.strictObject({ input: Text }),
  z.strictObject({ content: InputMessage.shape.content }),
]);

export const StopBody = z
  .strictObject({ mode: z.enum(["cancel", "interrupt"]).default("cancel") })
  .default({ mode: "cancel" });

const Title = z
  .string()
  .trim()
  .max(256)
  .describe("Absent: the first words with which a run starts. Empty: none, and none is made.");

export const CreateThreadBody = z
  .strictObject({ id: Id.optional(), title: Title.optional(), metadata: Metadata.default({}) })
  .default({ metadata: {} });
export const ForkThreadBody = z
  .strictObject({
    message_id: z.string().min(1).max(64).optional().describe("The last message to copy. Default: all."),
    id: Id.optional(),
    title: Title.optional().describe("Default: that of the thread."),
  })
  .default({});
export const NameThreadBody = z.strictObject({}).default({});
export const UpdateThreadBody = z.strictObject({
  title: Title.describe("Empty: none, and none is made.").optional(),
  metadata: Metadata.optional(),
});

const Limit = (most: number, usual: number) => z.coerce.number().int().min(1).max(most).default(usual);
export const PageQuery = z.strictObject({ limit: Limit(100, 20), cursor: z.string().max(512).optional() });

/** Held as ISO 8601 in UTC. */
const Since = z
  .union(
    [
      z.iso.datetime({ offset: true }),
      z
        .string()
        .regex(/^\d{1,15}$/)
        .transform(Number),
    ],
    "must be a time such as 2026-11-23T09:00:00Z, or ms since 1970",
  )
  .transform((time) => new Date(time).toISOString());

export const ThreadsQuery = PageQuery.extend({
  agent: z.string().max(64).optional(),
  status: Thread.shape.status.optional(),
  since: Since.optional().describe("ISO 8601, or ms since 1970: only threads that changed then or later."),
  q: z.string().max(256).optional().describe("Part of the title, in any case."),
  in: z
    .enum(["title", "messages"])
    .default("title")
    .describe("Where `q` is looked for; with `messages`, in the title and what users and agents have said."),
  parent: Id.optional().describe(
    "Only threads of subagents of this one. Default: only threads that are no subagent's.",
  ),
  children: z
    .literal("true")
    .transform(() => true as const)
    .optional()
    .describe("Include subagents' threads."),
});

export const RunsQuery = PageQuery.extend({
  agent: z.string().max(64).optional(),
  status: RunRecord.shape.status.optional(),
  since: Since.optional().describe(
    "ISO 8601, or ms since 1970: only runs that were accepted or have ended then or later.",
  ),
});

export const MessagesQuery = z.strictObject({
  limit: Limit(1000, 1000),
  after: z.string().max(64).optional().describe("A message id: only messages after it."),
});

export const EventsQuery = z.strictObject({
  after: z.string().max(128).optional().describe("Like Last-Event-ID, for clients that cannot send headers."),
  heartbeat: z.enum(["comment", "named"]).default("comment"),
  ticket: z
    .string()
    .max(8192)
    .optional()
    .describe("From `POST /tickets`, for a browser's EventSource, which cannot send headers."),
});

export const pageOf = <T extends z.ZodType>(item: T) =>
  z.object({ items: z.array(item), next_cursor: z.string().optional() });

export const ThreadState = z
  .object({
    thread_id: Id,
    messages: z.array(Message),
    todos: z.unknown().optional(),
    files: z.unknown().optional(),
    status: Thread.shape.status,
    version: z.int().describe("Grows with every message."),
  })
  .catchall(z.unknown())
  .meta({ id: "ThreadState" });
