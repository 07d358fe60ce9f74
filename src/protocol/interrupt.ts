// An interrupt: a call that waits for an answer from outside, a person's or a front end's; and the answer.

import { z } from "zod";

export const InterruptKind = z.enum(["approval", "question", "tool"]);
export type InterruptKind = z.infer<typeof InterruptKind>;

export const RememberAs = z.enum(["call", "command", "tool"]);
export type RememberAs = z.infer<typeof RememberAs>;

/** A rule that an answer can be remembered as. */
const RememberOption = z
  .object({
    remember_as: RememberAs,
    command_prefix: z
      .array(z.string())
      .optional()
      .describe("With `command`: how each command of a line must begin; whole words."),
  })
  .meta({ id: "RememberOption" });
export type RememberOption = z.infer<typeof RememberOption>;

export const Answer = z
  .strictObject({
    id: z.string().min(1).max(256).describe("Id of the interrupt."),
    decision: z.enum(["approve", "deny", "edit", "respond"]),
    args: z.record(z.string(), z.unknown()).optional().describe("With `edit`: the new arguments."),
    message: z
      .string()
      .max(100_000)
      .optional()
      .describe(
        "With `deny`: why, for the model. With `respond`: the answer, in place of the call's result.",
      ),
    remember: z
      .enum(["session", "agent"])
      .optional()
      .describe(
        "Apply this decision from now on: in this thread, or in all of this user's threads with the agent.",
      ),
    remember_as: RememberAs.optional().describe(
      "With `remember`: to the very same call (default), to commands that begin as its interrupt says, or to every call of the tool.",
    ),
  })
  .meta({ id: "Answer" });
export type Answer = z.infer<typeof Answer>;

export const Interrupt = z
  .object({
    id: z.string(),
    kind: InterruptKind.describe(
      "May the call run? · What is the user's answer? · The front end executes the call.",
    ),
    call_id: z.string(),
    run_id: z.string(),
    name: z.string().describe("The tool."),
    args: z.record(z.string(), z.unknown()),
    prompt: z.string().describe("The question, for a person."),
    options: z.array(z.string()).optional().describe("The options."),
    one_of_options: z
      .literal(true)
      .optional()
      .describe("The answer must be one of `options`, word for word. Absent: any text is an answer."),
    remember_options: z
      .array(RememberOption)
      .optional()
      .describe("Values that `remember_as` may have when you answer this approval. Default: `call` only."),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime().optional().describe("When it is decided automatically."),
    asked_by: z
      .object({ agent: z.string(), name: z.string(), thread_id: z.string(), id: z.string() })
      .optional()
      .describe("The subagent, its thread, and the id of the interrupt there."),
  })
  .meta({ id: "Interrupt" });
export type Interrupt = z.infer<typeof Interrupt>;

/** How unanswered interrupts are decided. */
export interface InterruptPolicy {
  /** How long one stays open, in ms. Absent: until it is answered. */
  readonly expiresAfterMs?: number | undefined;
  /** The decision on an expired approval; other interrupts are denied. */
  readonly onExpiry: "approve" | "deny";
  /** No one is available: questions and approvals are denied at once. Calls of client tools still wait. */
  readonly unattended: boolean;
}
