// An interrupt is a call that waits for an answer from a person or a front end. Also defines the answer.

import { z } from "zod";

export const InterruptKind = z.enum(["approval", "question", "tool", "connect"]);
export type InterruptKind = z.infer<typeof InterruptKind>;

/** Returns true if interrupts of this kind are answered with `approve` or `deny`. */
export const asksToApprove = (kind: InterruptKind) => kind === "approval" || kind === "connect";

export const RememberAs = z.enum(["call", "command", "tool"]);
export type RememberAs = z.infer<typeof RememberAs>;

/** A way to remember an answer as a rule. */
const RememberOption = z
  .object({
    remember_as: RememberAs,
    command_prefix: z
      .array(z.string())
      .optional()
      .describe("With `command`: the whole words that each command on a line must begin with."),
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
        "With `deny`: the reason, for the model. With `respond`: the answer, which becomes the call's result.",
      ),
    remember: z
      .enum(["session", "agent"])
      .optional()
      .describe(
        "Apply this decision to later calls too: in this thread, or in all of this user's threads with the agent.",
      ),
    remember_as: RememberAs.optional().describe(
      "With `remember`: apply the decision to identical calls (default), to commands with the interrupt's `command_prefix`, or to every call of the tool.",
    ),
  })
  .meta({ id: "Answer" });
export type Answer = z.infer<typeof Answer>;

export const Interrupt = z
  .object({
    id: z.string(),
    kind: InterruptKind.describe(
      "`approval`: allow or deny the call. `question`: answer the prompt. `tool`: execute the call in the front end and send its result. `connect`: connect an account. If `url` is present, open it; otherwise, approve once the account is connected.",
    ),
    call_id: z.string(),
    run_id: z.string(),
    name: z.string().describe("Name of the tool."),
    args: z.record(z.string(), z.unknown()),
    prompt: z.string().describe("The question to show to the user."),
    url: z
      .string()
      .optional()
      .describe(
        "With `connect`: address where the user can connect the account. The run then continues automatically.",
      ),
    options: z.array(z.string()).optional().describe("Answers to offer to the user."),
    one_of_options: z
      .literal(true)
      .optional()
      .describe("True if the answer must match one of `options` exactly. If absent, any text is accepted."),
    remember_options: z
      .array(RememberOption)
      .optional()
      .describe("Values of `remember_as` that this approval accepts. Default: `call` only."),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime().optional().describe("Time when the interrupt is decided automatically."),
    asked_by: z
      .object({ agent: z.string(), name: z.string(), thread_id: z.string(), id: z.string() })
      .optional()
      .describe("The subagent that asked, its thread, and the id of the interrupt in that thread."),
  })
  .meta({ id: "Interrupt" });
export type Interrupt = z.infer<typeof Interrupt>;

/** Returns the question along with the address to open, for a front end that shows only text. */
export const promptText = ({ prompt, url }: Pick<Interrupt, "prompt" | "url">): string =>
  url === undefined ? prompt : `${prompt}\n${url}`;

/** How to decide unanswered interrupts. */
export interface InterruptPolicy {
  /** The number of milliseconds for which an interrupt stays open. If absent, it stays open until it is answered. */
  readonly expiresAfterMs?: number | undefined;
  /** The decision on an expired approval. Other expired interrupts are denied. */
  readonly onExpiry: "approve" | "deny";
  /**
   * True if no person is available, so questions and approvals are denied at once. Calls of client tools still wait.
   */
  readonly unattended: boolean;
}
