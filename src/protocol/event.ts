// Stream events, which are the same inside the server and on the wire.
//
// Readers must skip unknown events, delta kinds and fields, because a newer release may write to the same store.
//
// A delta contains only `path` and `data`; the event that opens its span contains the rest. Every other event gets its
// ids and its time when it is stored.

import { z } from "zod";
import { Answer, Interrupt } from "./interrupt.ts";
import { LimitDetails } from "./limit-details.ts";
import { Message, Usage } from "./message.ts";

const stamp = {
  run_id: z.string().optional(),
  thread_id: z.string().optional(),
  path: z
    .array(z.string())
    .optional()
    .describe("Tool call ids from the root run down to the agent that emitted the event."),
  ts: z.iso.datetime().optional(),
};

const event = <N extends string, D extends z.ZodType>(name: N, data: D) =>
  z.object({ event: z.literal(name), ...stamp, data });
const named = <N extends string, D extends z.ZodType>(name: N, data: D) =>
  z.object({ event: z.literal(name), name: z.string(), ...stamp, data });

export const ErrorShape = z
  .object({
    code: z.string(),
    message: z.string(),
    details: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: "Error" });

/**
 * How a run ended. `error` means that it reached a limit, which is named in `stop_reason`. Every other failure is an
 * `error` event.
 */
export const DoneStatus = z.enum(["success", "interrupted", "cancelled", "error"]);

const RunStart = event(
  "run_start",
  z.object({
    agent: z.string(),
    model: z.string(),
    attempt: z.int().positive(),
    replaces: z
      .string()
      .optional()
      .describe(
        "Id of the message that the run replaced. This message and all later ones are no longer in the thread.",
      ),
  }),
);
const RunResumed = event("run_resumed", z.object({ attempt: z.int().positive() }));
const MessageDiscard = event("message_discard", z.object({ message_id: z.string() }));
const ModelStart = named(
  "on_chat_model_start",
  z.object({
    message_id: z.string(),
    model: z.string(),
    message_count: z.int().optional().describe("Number of messages in the request."),
    web_search: z
      .literal(true)
      .optional()
      .describe("True if the model's provider may search the web during the call."),
  }),
);
const ModelStream = z.object({
  event: z.literal("on_chat_model_stream"),
  path: stamp.path,
  data: z.union([
    z.object({ delta: z.string() }),
    z.object({ reasoning_delta: z.string() }),
    z.object({
      tool_call: z.object({
        index: z.int(),
        id: z.string().optional(),
        name: z.string().optional(),
        args_delta: z.string(),
      }),
    }),
  ]),
});
const ModelEnd = named(
  "on_chat_model_end",
  z.object({
    message_id: z.string(),
    stop_reason: z.string().optional(),
    usage: Usage.optional(),
    first_token_ms: z.number().optional().describe("Milliseconds from the request to the first delta."),
    error: ErrorShape.optional(),
  }),
);
const ToolStart = named(
  "on_tool_start",
  z.object({ call_id: z.string(), args: z.record(z.string(), z.unknown()) }),
);
const ToolProgress = named("on_tool_progress", z.object({ call_id: z.string(), output: z.string() }));
const ToolEnd = named(
  "on_tool_end",
  z.object({
    call_id: z.string(),
    output: z.string().optional(),
    error: z.string().optional(),
    interrupted: z.literal(true).optional(),
    duration_ms: z.number(),
  }),
);
const OnMessage = event("on_message", z.object({ message: Message }));
const OnState = event(
  "on_state",
  z.object({
    key: z.string(),
    value: z.unknown().optional(),
    patch: z
      .record(z.string(), z.unknown())
      .optional()
      .describe("Keys to merge into the value. `null` deletes a key."),
  }),
);
const OnInterrupt = event("on_interrupt", Interrupt);
const OnResume = event(
  "on_resume",
  z.object({
    id: z.string(),
    name: z.string().optional().describe("Name of the tool."),
    decision: Answer.shape.decision,
  }),
);
const SubagentStart = event(
  "on_subagent_start",
  z.object({
    id: z.string().describe("The subagent's element in the `path` of its events."),
    call_id: z.string(),
    agent: z.string(),
    name: z.string(),
    prefix: z.string().optional().describe("Icon of the agent, for display."),
    parent: z.string().optional().describe("The agent that delegated the task."),
    thread_id: z.string(),
    run_id: z.string(),
  }),
);
const SubagentEnd = event(
  "on_subagent_end",
  z.object({
    id: z.string(),
    call_id: z.string(),
    status: z
      .enum(["completed", "failed", "cancelled", "interrupted", "running"])
      .describe(
        "`interrupted`: the parent will resume following the subagent. `running`: the subagent continues in the background.",
      ),
    summary: z.string(),
    usage: Usage.optional().describe("The subagent's share of this run's usage."),
  }),
);
const Warning = event("warning", z.object({ code: z.string(), message: z.string() }));
const ErrorEvent = event("error", ErrorShape.extend({ usage: Usage.optional() }));
const Done = event(
  "done",
  z.object({
    status: DoneStatus,
    stop_reason: z.string(),
    usage: Usage,
    message_id: z.string().optional(),
    output: z
      .record(z.string(), z.unknown())
      .optional()
      .describe("The agent's answer, as an object that matches its `output_schema`."),
    details: LimitDetails.optional().describe("With `status: error`: the limit that ended the run."),
    message: z
      .string()
      .optional()
      .describe("A sentence for users about how the run ended. Absent if the run ended normally."),
  }),
);

export const StreamEvent = z
  .discriminatedUnion("event", [
    RunStart,
    RunResumed,
    MessageDiscard,
    ModelStart,
    ModelStream,
    ModelEnd,
    ToolStart,
    ToolProgress,
    ToolEnd,
    OnMessage,
    OnState,
    OnInterrupt,
    OnResume,
    SubagentStart,
    SubagentEnd,
    Warning,
    ErrorEvent,
    Done,
  ])
  .meta({ id: "StreamEvent" });
export type StreamEvent = z.infer<typeof StreamEvent>;
export type EventName = StreamEvent["event"];
export type EventData<N extends EventName> = Extract<StreamEvent, { event: N }>["data"];

/** Returns true for events that end a run. The last event of a run is always one of these. */
export function isTerminal(event: EventName): boolean {
  return event === "done" || event === "error";
}

const PROGRESS: ReadonlySet<EventName> = new Set([
  "run_start",
  "on_chat_model_start",
  "on_chat_model_stream",
  "on_chat_model_end",
  "on_tool_progress",
  "on_tool_end",
  "warning",
]);

/** Returns true for events that only show progress. The run does not wait until they are stored. */
export function isProgress(event: EventName): boolean {
  return PROGRESS.has(event);
}

export function warning(code: string, message: string): StreamEvent {
  return { event: "warning", data: { code, message } };
}
