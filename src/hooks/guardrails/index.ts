// Checks on what users say, on what the model says and on the arguments of the calls it makes: by rule, or by a
// model that judges. A refusal is an answer: the run ends with `done`, `stop_reason: "refusal"` and a message for
// the user in place of what was refused.
//
// With checks on `output` or `tool_args` a message reaches viewers only as a whole, after it was judged: no
// refused word is streamed, stored or run. What a user said and was refused stays in the thread, and no later
// request shows it to the model. Images and files are not looked into.

import { z } from "zod";
import { defineHook, type HookServices } from "../../core/hook.ts";
import { type AssistantMessage, assistantMessage } from "../../core/message.ts";
import type { Completion } from "../../core/model.ts";
import type { Stream } from "../../core/stream.ts";
import type { Run } from "../../core/tool.ts";
import { firstChars } from "../../lib/text.ts";
import { held, spoken } from "./buffer-until-reviewed.ts";
import { Checks, guardOf } from "./check.ts";
import { authorOf, callsOf, newInput, type Stage, type Subject, withoutRefused, wordsOf } from "./extract.ts";

const Options = z
  .strictObject({
    message: z
      .string()
      .min(1)
      .max(2000)
      .default("I cannot help with that.")
      .describe("What the user reads in place of what was refused."),
    input: Checks.optional().describe("Checks on what users say."),
    output: Checks.optional().describe("Checks on what the model says and thinks."),
    tool_args: Checks.optional().describe("Checks on the arguments of each tool call."),
  })
  .refine(
    ({ input, output, tool_args }) => input || output || tool_args,
    "must hold `input`, `output` or `tool_args`: there is nothing to check otherwise",
  );

export const guardrails = defineHook({
  name: "guardrails",
  options: Options,
  activeByDefault: () => false,
  create({ message: words, ...checks }, services) {
    const guard = (stage: Stage) => checks[stage] && guardOf(stage, checks[stage], services);
    const input = guard("input");
    const reviews = [
      { stage: "output", guard: guard("output"), subjectOf: wordsOf },
      { stage: "tool_args", guard: guard("tool_args"), subjectOf: callsIn },
    ] as const;
    const isReviewed = reviews.some((review) => review.guard);
    /** The thread's length when what users said in it was let through. */
    let accepted = 0;

    return {
      name: "guardrails",

      modifyRequest: (request) => ({ ...request, messages: withoutRefused(request.messages) }),

      async *wrapModelCall(request, next, run) {
        const call = { request, next };
        const isNew = input && accepted !== run.messages.length;
        const fault = isNew && (yield* input(newInput(run.messages), call));
        if (fault) {
          note("input", fault, run, services);
          return yield* refusal(words);
        }
        accepted = run.messages.length;
        if (!isReviewed) return yield* next(request);
        return yield* held(next(request), async function* (completion) {
          for (const { stage, guard, subjectOf } of reviews) {
            const fault = guard && (yield* guard(subjectOf(completion.message), call));
            if (!fault) continue;
            note(stage, fault, run, services);
            return inPlaceOf(completion, words, stage);
          }
          return completion;
        });
      },
    };
  },
});

const callsIn = ({ tool_calls = [] }: AssistantMessage): Subject => callsOf(tool_calls);

/** Why something was refused is the operator's to know: it is in the trace, and nowhere else. */
function note(stage: Stage, fault: string, run: Run, { recorder }: HookServices): void {
  const ids = { run_id: run.id, thread_id: run.threadId };
  recorder?.startSpan("guardrail", { ...ids, stage, refused: firstChars(fault, 500) }).end();
}

/** An answer of our own, seen and stored like a model's. */
async function* refusal(words: string): Stream<Completion> {
  const author = authorOf("input");
  const message: AssistantMessage = { ...assistantMessage(words), model: author };
  const { id: message_id } = message;
  yield { event: "on_chat_model_start", name: author, data: { message_id, model: author } };
  yield* spoken(message);
  const stop_reason = "refusal";
  yield { event: "on_chat_model_end", name: author, data: { message_id, stop_reason } };
  return { message, stop_reason };
}

/** The message keeps its id and what it cost; its words, thoughts and calls are gone. */
function inPlaceOf({ message }: Completion, words: string, stage: Stage): Completion {
  const { tool_calls: _calls, reasoning: _thoughts, ...rest } = message;
  return { message: { ...rest, content: words, model: authorOf(stage) }, stop_reason: "refusal" };
}
