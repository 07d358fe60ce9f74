// Request and response schemas in addition to the types in core. All of them are in openapi.yaml.

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
    type: z.url().describe("Address of the documentation for this error code."),
    title: z.string(),
    status: z.int(),
    code: z.string(),
    detail: z.string(),
    instance: z.string(),
    request_id: z
      .string()
      .optional()
      .describe(
        "Same value as in the `X-Request-Id` header and in the server's log. Absent if the request could not be read.",
      ),
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
    name: z
      .string()
      .min(1)
      .max(256)
      .describe("Name of one of the agent's tools, or of a tool in the run's `tools`."),
    args: z.record(z.string(), z.unknown()).default({}),
  })
  .meta({ id: "GivenCall" });

const ClientTools = boundedList(ClientTool, 64)
  .min(1)
  .optional()
  .describe("Tools that the client executes. A call interrupts the run; send its result with `resume`.");

const countOf = (values: readonly unknown[]) => values.filter((value) => value !== undefined).length;

export const StartRunBody = z
  .strictObject({
    agent: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .describe("Default: the thread's agent, or the first configured agent for a new thread."),
    input: Text.optional().describe("Shorthand for one user message."),
    messages: boundedList(InputMessage, 100).min(1).optional(),
    continue: z
      .literal(true)
      .optional()
      .describe(
        "Use instead of a message. The model completes a last answer that was cut off (`incomplete`), or answers the last user message or tool result.",
      ),
    calls: boundedList(GivenCall, 64)
      .min(1)
      .optional()
      .describe(
        "Tool calls that the run executes before its first model call, as if the model had made them. Can follow messages or replace them.",
      ),
    model: z
      .string()
      .min(1)
      .max(256)
      .optional()
      .describe("`provider:model` to use instead of the agent's own model."),
    ...ModelSettings.shape,
    output_schema: z
      .record(z.string(), z.unknown())
      .optional()
      .describe(
        "JSON Schema (2020-12) of an object. The final answer is JSON that matches this schema. The `done` event and the run contain the answer as `output`. Default: the agent's own schema.",
      ),
    tools: ClientTools,
    metadata: Metadata.default({}),
    replaces: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .describe(
        "Id of a user message. The run replaces this message and all later messages. The server keeps the replaced messages as a branch.",
      ),
    on_busy: z
      .enum(["reject", "enqueue", "interrupt"])
      .default("reject")
      .describe(
        "Action if the thread has an active run: return 409, wait for that run, or cancel it and start next.",
      ),
    on_disconnect: z
      .enum(["continue", "cancel"])
      .default("continue")
      .describe("Action if the client disconnects before the run ends."),
    background: z
      .boolean()
      .default(false)
      .describe("Return 202 immediately. Follow the run's events at the URL in `Location`."),
  })
  .refine(
    ({ input, messages, continue: goesOn, calls }) =>
      countOf([input, messages, goesOn]) ===
      (calls && countOf([input, messages]) === 0 ? countOf([goesOn]) : 1),
    { error: "needs exactly one of `input`, `messages` and `continue`, or `calls`" },
  )
  .refine(({ continue: goesOn, calls }) => !goesOn || calls === undefined, {
    path: ["calls"],
    error:
      "is not allowed with `continue`: leave `continue` out, because a run with `calls` continues anyway",
  })
  .refine(({ continue: goesOn, replaces }) => !goesOn || replaces === undefined, {
    path: ["continue"],
    error: "replaces no message, so `replaces` is not allowed",
  })
  .refine(({ replaces, on_busy }) => replaces === undefined || on_busy === "reject", {
    path: ["replaces"],
    error: "requires `on_busy: reject`: otherwise messages of the active run would be deleted unseen",
  })
  .meta({ id: "StartRun" });
export type StartRunBody = z.infer<typeof StartRunBody>;

/** A run without a thread, so it has nothing to continue, to replace or to wait for. */
const NewThreadRun = z
  .strictObject(StartRunBody.shape)
  .omit({ continue: true, replaces: true, on_busy: true })
  .extend({
    agent: StartRunBody.shape.agent.describe("Default: the first configured agent."),
    keep_thread: z
      .boolean()
      .default(true)
      .describe(
        "Keeps the thread. With `false`, the server deletes it once the run has ended and you have read the answer, or after `retention.temporary_threads`.",
      ),
  });
const hasInput = ({
  input,
  messages,
  calls,
}: Pick<z.infer<typeof NewThreadRun>, "input" | "messages" | "calls">) =>
  countOf([input, messages]) === 1 || (calls !== undefined && countOf([input, messages]) === 0);
const INPUT_FAULT = { error: "give one of `input` and `messages`, or `calls`" };

export const NewThreadRunBody = NewThreadRun.refine(hasInput, INPUT_FAULT).meta({
  id: "StartRunOnNewThread",
});

/** The maximum number of runs in a batch. */
export const MAX_BATCH = 100;
export const RunBatchBody = z
  .strictObject({
    runs: boundedList(
      NewThreadRun.omit({ on_disconnect: true, background: true }).refine(hasInput, INPUT_FAULT),
      MAX_BATCH,
    ).min(1),
  })
  .meta({ id: "RunBatch" });

export const ResumeBody = z
  .strictObject({
    answers: boundedList(Answer, 64).min(1).describe("Answers to some or all open interrupts."),
    tools: ClientTools,
    on_disconnect: StartRunBody.shape.on_disconnect,
    background: StartRunBody.shape.background,
  })
  .meta({ id: "ResumeRun" });

export const RunStream = z
  .string()
  .describe(
    "Server-Sent Events with `id`, `event` and a StreamEvent as `data`. The last event is `credentials_ended` if the credentials end before the stream.",
  );

export const Phase = z
  .object({
    name: z.enum([
      ...["idle", "processing", "calling_model", "executing_tool", "waiting_for_subagent"],
      ...["waiting_for_permission", "waiting_for_answer", "waiting_for_tool"],
    ] as const satisfies readonly PhaseName[]),
    of: z.array(z.string()).optional().describe("Names of the tools or subagents."),
  })
  .meta({ id: "Phase" });

const Output = z
  .record(z.string(), z.unknown())
  .optional()
  .describe("Answer of a run with an `output_schema`. Absent once the run's events are no longer kept.");

export const RunNow = RunRecord.extend({
  phase: Phase.optional().describe("Current phase of the run. Absent once the run has ended."),
  output: Output,
}).meta({ id: "RunNow" });

export const FinishedRun = RunRecord.extend({
  messages: z.array(Message).describe("Messages that the run added to the thread, including its input."),
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
  .describe(
    "If absent, the thread's title is the first words of its first run. If empty, the thread has no title and none is generated.",
  );

export const CreateThreadBody = z
  .strictObject({ id: Id.optional(), title: Title.optional(), metadata: Metadata.default({}) })
  .default({ metadata: {} });
export const ForkThreadBody = z
  .strictObject({
    message_id: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .describe("Id of the last message to copy. Default: all messages are copied."),
    id: Id.optional(),
    title: Title.optional().describe("Default: the title of the original thread."),
  })
  .default({});
export const NameThreadBody = z.strictObject({}).default({});
export const UpdateThreadBody = z.strictObject({
  title: Title.describe("If empty, the thread has no title and none is generated.").optional(),
  metadata: Metadata.optional(),
});

const Limit = (most: number, usual: number) => z.coerce.number().int().min(1).max(most).default(usual);
export const PageQuery = z.strictObject({ limit: Limit(100, 20), cursor: z.string().max(512).optional() });

/** Stored as ISO 8601 in UTC. */
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
  since: Since.optional().describe(
    "Only threads that changed at or after this time, as an ISO 8601 date or in milliseconds since 1970.",
  ),
  q: z.string().max(256).optional().describe("Text to find in titles, case-insensitive."),
  in: z
    .enum(["title", "messages"])
    .default("title")
    .describe("Where to search for `q`. `messages` searches titles and the messages of users and agents."),
  parent: Id.optional().describe(
    "Only threads of this thread's subagents. Default: only threads that belong to no subagent.",
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
    "Only runs that were accepted or ended at or after this time, as an ISO 8601 date or in milliseconds since 1970.",
  ),
});

export const MessagesQuery = z.strictObject({
  limit: Limit(1000, 1000),
  after: z
    .string()
    .max(64)
    .optional()
    .describe("Returns only messages that come after the one with this id."),
});

export const EventsQuery = z.strictObject({
  after: z
    .string()
    .max(128)
    .optional()
    .describe("Alternative to the `Last-Event-ID` header for clients that cannot send headers."),
  heartbeat: z.enum(["comment", "named"]).default("comment"),
  ticket: z
    .string()
    .max(8192)
    .optional()
    .describe("Ticket from `POST /tickets`, for a browser's EventSource, which cannot send headers."),
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
    version: z.int().describe("Increases with every message."),
  })
  .catchall(z.unknown())
  .meta({ id: "ThreadState" });
