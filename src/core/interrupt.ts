// An interrupt: a call that waits for an answer from outside, a person's or a front end's; and the answer.

import { z } from "zod";

export const InterruptKind = z.enum(["approval", "question", "tool"]);
export type InterruptKind = z.infer<typeof InterruptKind>;

export const Answer = z
  .strictObject({
    id: z.string().min(1).max(256).describe("The interrupt's."),
    decision: z.enum(["approve", "deny", "edit", "respond"]),
    args: z.record(z.string(), z.unknown()).optional().describe("With `edit`: what the call is run with."),
    message: z
      .string()
      .max(100_000)
      .optional()
      .describe(
        "With `deny`: why, for the model. With `respond`: the answer, in place of the call's result.",
      ),
    remember: z
      .enum(["session"])
      .optional()
      .describe("Decide the same call alike in this thread from now on."),
  })
  .meta({ id: "Answer" });
export type Answer = z.infer<typeof Answer>;

export const Interrupt = z
  .object({
    id: z.string(),
    kind: InterruptKind.describe("May it run? · What does the user say? · The front end carries it out."),
    call_id: z.string(),
    run_id: z.string(),
    name: z.string().describe("The tool."),
    args: z.record(z.string(), z.unknown()),
    prompt: z.string().describe("What is asked, in words for a person."),
    options: z.array(z.string()).optional().describe("What may be chosen from."),
    created_at: z.iso.datetime(),
  })
  .meta({ id: "Interrupt" });
export type Interrupt = z.infer<typeof Interrupt>;
