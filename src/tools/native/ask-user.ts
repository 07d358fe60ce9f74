// Asks the user a question. The run is interrupted until it is answered.

import { z } from "zod";
import { askFor } from "../../core/open-interrupts.ts";
import { defineTool, done, failed, interrupted } from "../../core/tool.ts";

const parameters = z.object({
  question: z.string().min(1).max(4000).describe("What you want to know, as one clear question."),
  kind: z
    .enum(["confirm", "select", "multi_select", "input"])
    .default("input")
    .describe("Yes or no; one of `options`; some of `options`; a text."),
  options: z.array(z.string().min(1).max(200)).max(20).default([]).describe("What may be chosen from."),
});

export const askUser = defineTool({
  name: "ask_user",
  description:
    "Asks the user a question and waits for the answer. Use it when you cannot continue well without knowing; not for what you can find out yourself.",
  parameters,
  annotations: { readOnly: true, category: "plan", requiresPermission: false },
  async *execute({ question, kind, options }, call, run) {
    if ((kind === "select" || kind === "multi_select") && options.length < 2)
      return failed(`A question of kind \`${kind}\` needs at least two options.`);
    const choices = kind === "confirm" ? ["yes", "no"] : options;
    const answer = yield* askFor(
      {
        call,
        kind: "question",
        prompt: question,
        oneOfOptions: kind === "select",
        ...(choices.length > 0 ? { options: choices } : {}),
      },
      run,
    );
    if (!answer) return interrupted();
    if (answer.decision === "respond") return done(answer.message ?? "");
    return done(`The user does not want to answer.${answer.message ? ` ${answer.message}` : ""}`);
  },
});
