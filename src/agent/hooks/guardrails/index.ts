// Checks user input, model output and the arguments of tool calls, with rules or a judge model. A refusal counts as an answer:
// the run ends with `done`, `stop_reason: "refusal"` and a configured message.

import { z } from "zod";
import { firstChars } from "../../../lib/text.ts";
import { defineHook, type HookServices } from "../../core/hook.ts";
import { type AssistantMessage, assistantMessage } from "../../core/message.ts";
import type { Completion } from "../../core/model.ts";
import type { Stream } from "../../core/stream.ts";
import { denied, type Run } from "../../core/tool.ts";
import { held, spoken } from "./buffer-until-reviewed.ts";
import { Checks, guardOf } from "./check.ts";
import {
  areByUser,
  authorOf,
  callsOf,
  clientToolsIn,
  newInput,
  type Stage,
  type Subject,
  skillsIn,
  withoutRefused,
  wordsOf,
} from "./extract.ts";

const Options = z
  .strictObject({
    message: z
      .string()
      .min(1)
      .max(2000)
      .default("I cannot help with that.")
      .describe("Text that replaces a refused message."),
    input: Checks.optional().describe("Checks on users' messages."),
    output: Checks.optional().describe("Checks on the model's answers and thinking."),
    tool_args: Checks.optional().describe("Checks on the arguments of each tool call."),
  })
  .refine(
    ({ input, output, tool_args }) => input || output || tool_args,
    "must contain at least one of `input`, `output` and `tool_args`",
  );

export const guardrails = defineHook({
  name: "guardrails",
  options: Options,
  activeByDefault: () => false,
  models: ({ input, output, tool_args }) =>
    [input, output, tool_args].flatMap((checks) => checks?.judge?.model ?? []),
  create({ message: words, ...checks }, services) {
    const guard = (stage: Stage) => checks[stage] && guardOf(stage, checks[stage], services);
    const input = guard("input");
    const toolArgs = guard("tool_args");
    const reviews = [
      { stage: "output", guard: guard("output"), subjectOf: wordsOf },
      { stage: "tool_args", guard: toolArgs, subjectOf: callsIn },
    ] as const;
    const isReviewed = reviews.some((review) => review.guard);
    /** The length of the thread when its input was last accepted. */
    let accepted = 0;

    return {
      name: "guardrails",

      modifyRequest: (request) => ({ ...request, messages: withoutRefused(request.messages) }),

      async *wrapModelCall(request, next, run, deltas) {
        const call = { request, next };
        const isNew = accepted !== run.messages.length;
        // A run's tools and skills do not change, so check them only once.
        const brought = accepted > 0 ? [] : [clientToolsIn(run.tools.values()), skillsIn(request.system)];
        for (const subject of isNew ? [newInput(run.messages), ...brought] : []) {
          const fault = input && (yield* input(subject, call));
          if (!fault) continue;
          note("input", fault, run, services);
          return yield* refusal(words);
        }
        accepted = run.messages.length;
        if (!isReviewed) return yield* next(request, deltas);
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

      async *wrapToolCall(request, next, run) {
        const isChecked = toolArgs && areByUser(run.messages);
        const fault = isChecked && (yield* toolArgs(callsOf([request.call])));
        if (!fault) return yield* next(request);
        note("tool_args", fault, run, services);
        return denied(words);
      },
    };
  },
});

const callsIn = ({ tool_calls = [] }: AssistantMessage): Subject => callsOf(tool_calls);

/** Records the reason only in the trace, for the operator. */
function note(stage: Stage, fault: string, run: Run, { recorder }: HookServices): void {
  const ids = { run_id: run.id, thread_id: run.threadId };
  recorder?.startSpan("guardrail", { ...ids, stage, refused: firstChars(fault, 500) }).end();
}

/** Streams and stores a generated answer like a model's answer. */
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

/** Replaces the text, reasoning, calls and pages of a message, and keeps its id and usage. */
function inPlaceOf({ message }: Completion, words: string, stage: Stage): Completion {
  const { tool_calls: _calls, reasoning: _thoughts, ...others } = message;
  const { citations: _citations, provider_blocks: _blocks, ...rest } = others;
  const searched = rest.sources ? { sources: [] } : {};
  return {
    message: { ...rest, ...searched, content: words, model: authorOf(stage) },
    stop_reason: "refusal",
  };
}
