// The records of threads and runs.

import { z } from "zod";
import { boundedMap } from "../../lib/bounded-schemas.ts";
import { DoneStatus, ErrorShape } from "../../protocol/event.ts";
import { Id } from "../../protocol/ids.ts";
import { Answer } from "../../protocol/interrupt.ts";
import { LimitDetails } from "../../protocol/limit-details.ts";
import { InheritedRule, Reading } from "./flow.ts";
import { Message, Usage } from "./message.ts";
import { ModelSettings } from "./model.ts";

/** A client's own data on a thread or run: small, flat and returned unchanged. */
export const Metadata = boundedMap(
  z.string().max(64),
  z.union([z.string().max(512), z.number(), z.boolean()]),
  32,
);

/** The tool call for which a thread was started, in a run of another thread. */
export const Parent = z
  .object({
    thread_id: z.string(),
    run_id: z.string(),
    call_id: z.string(),
    background: z.boolean().describe("True if the subagent continues after the parent's run."),
    replaced: z
      .string()
      .optional()
      .describe(
        "Branches only: id of the message that the parent's run replaced. The branch contains this message and all later ones.",
      ),
  })
  .meta({ id: "Parent" });
export type Parent = z.infer<typeof Parent>;

/** A child's position in the tree of threads. Each of the child's runs stores this position. */
export const Lineage = z.object({
  parent: Parent,
  /** The user's own thread at the top, which owns the notes and tasks that all its subagents share. */
  root: Id,
  /** The depth below the root. It is 1 for the root's direct children. */
  depth: z.int().min(1),
  /** The child's name, such as `coder-refactor-1`. */
  name: z.string(),
  /** The agent in whose backend the child works. If undefined, the child works in its own backend. */
  backend_of: z.string().optional(),
  /** The readings of the parent's thread at the time when the child's run began. */
  read: z.array(Reading).optional(),
  /** The flow rules of the agents that the child works for, which also apply to the child. */
  flow: z.array(InheritedRule).optional(),
});
export type Lineage = z.infer<typeof Lineage>;

/** The thread that this thread was copied from. */
export const ForkedFrom = z
  .object({
    thread_id: z.string(),
    message_id: z
      .string()
      .optional()
      .describe("Id of the last message that was copied. Absent if the thread was empty."),
  })
  .meta({ id: "ForkedFrom" });
export type ForkedFrom = z.infer<typeof ForkedFrom>;

export const Thread = z
  .object({
    id: z.string(),
    agent: z.string().optional().describe("Agent of the most recent run."),
    title: z.string().optional(),
    metadata: Metadata,
    parent: Parent.optional().describe("Call in the parent's run that the thread works on."),
    forked_from: ForkedFrom.optional().describe(
      "The thread that this one was copied from. It may have been changed or deleted since.",
    ),
    status: z.enum(["idle", "busy", "interrupted", "error"]).describe("Phase of the most recent run."),
    message_count: z.int(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: "Thread" });
export type Thread = z.infer<typeof Thread>;
export type ThreadStatus = Thread["status"];

export const RunStatus = z.enum(["pending", "running", ...DoneStatus.options]);
export type RunStatus = z.infer<typeof RunStatus>;

export const isSettled = (status: RunStatus) => status !== "pending" && status !== "running";

export const RunRecord = z
  .object({
    id: z.string(),
    thread_id: z.string(),
    agent: z.string(),
    status: RunStatus,
    attempt: z.int().describe("Increases with each take-over after a crash."),
    resumes: z.string().optional().describe("Id of the interrupted run that this run resumes."),
    stop_reason: z.string().optional(),
    error: ErrorShape.optional(),
    details: LimitDetails.optional().describe("The limit that ended the run."),
    usage: Usage,
    metadata: Metadata,
    created_at: z.iso.datetime(),
    ended_at: z.iso.datetime().optional(),
  })
  .meta({ id: "Run" });
export type RunRecord = z.infer<typeof RunRecord>;

/** A tool that the front end executes. The request that starts the run defines it. */
export const ClientTool = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-zA-Z0-9_-]{1,64}$/, "must be 1 to 64 characters from A-Z, a-z, 0-9, _ and -")
      .refine((name) => !name.startsWith("mcp__"), "must not begin with mcp__"),
    description: z.string().min(1).max(8192).describe("Description for the model."),
    parameters: z
      .record(z.string(), z.unknown())
      .describe("JSON Schema (2020-12) of the arguments; `type` is `object`."),
  })
  .meta({ id: "ClientTool" });
export type ClientTool = z.infer<typeof ClientTool>;

/** The request that started a run. */
export const Origin = z.object({
  /** The id of the request in the server's response and in its log. */
  request_id: z.string(),
  /** The W3C trace context of the span that contains the run. */
  traceparent: z.string().optional(),
  /**
   * The W3C trace context of a caller that may not set the run's trace. The run has a separate trace that
   * links to this one.
   */
  linked: z.string().optional(),
});
export type Origin = z.infer<typeof Origin>;

/** The task of a run, stored with it so that any process can start or resume it. */
export const RunRequest = z.object({
  model: z.string().optional(),
  settings: ModelSettings,
  input: z.array(Message),
  /** The id of the message that this run deleted, with all later messages, when it was accepted. */
  replaces: z.string().optional(),
  answers: z.array(Answer).optional(),
  /** The JSON Schema of an object that the final answer must match. Default: the agent's. */
  output_schema: z.record(z.string(), z.unknown()).optional(),
  /** The tools that the front end executes. */
  tools: z.array(ClientTool).optional(),
  /** Set for a run that works for another run. */
  lineage: Lineage.optional(),
  /** True if no one can answer, so questions and approvals are denied at once. */
  unattended: z.literal(true).optional(),
  /** The id of the API key that started this run or the run that this run works for. */
  api_key: z.string().optional(),
  /** Undefined for a run that the server started by itself. */
  origin: Origin.optional(),
  /** True if the run only cancels its thread's waiting calls, without calling a model. */
  cancel: z.literal(true).optional(),
  /**
   * The id of the branch whose messages are the input. They replace the thread's messages, without a model
   * call. Only with `cancel`.
   */
  restores: z.string().optional(),
  /**
   * True if the run only appends its input. No model is called, and open calls stay open. Only with `cancel`.
   */
  appends: z.literal(true).optional(),
});
export type RunRequest = z.infer<typeof RunRequest>;
