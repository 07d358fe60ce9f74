// Enforces the quotas of the tenant and the user: reserves budget before each model call and settles it with the actual usage.
// Near a limit viewers get one `warning` per run; at the limit the run ends with `done` and the reason `quota`. Every call
// counts: answers, summaries, retries, aborted calls. Without quotas the hook has no layers.

import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { RunLimit } from "../core/errors.ts";
import { warning } from "../core/event.ts";
import { defineHook, type ModelCallQuotas } from "../core/hook.ts";
import { estimateTokens, NO_USAGE, type Usage } from "../core/message.ts";
import type { Completion, ModelRequest } from "../core/model.ts";
import { tap } from "../core/stream.ts";
import type { Run } from "../core/tool.ts";
import { estimateRequest } from "./summarization/projection.ts";

/** The default `max_tokens` of models, and the most that any model answers. */
const ANSWER_TOKENS = 8192;
const LONGEST_ANSWER_TOKENS = 128_000;
/** Assumed output speed, for calls of which only the duration is known. */
const TOKENS_A_SECOND = 100;
/** How long a call waits for budget that other calls have reserved, in ms. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

export const metering = defineHook({
  name: "metering",
  options: z.strictObject({}),
  activeByDefault: () => true,
  create(_, { agent, quotas }) {
    if (!quotas) return { name: "metering" };
    let wasWarned = false;

    return {
      name: "metering",

      async *wrapModelCall(request, next, run) {
        const { id, soft } = yield* admitted(request, run, quotas);
        const settle = (usage?: Usage) =>
          quotas.settle(run.owner, id, usage && { agent: agent.name, model: request.model.name, usage });
        let isSettled = false;
        let spokeAt: number | undefined;
        try {
          if (soft && !wasWarned) yield warning("quota", soft);
          wasWarned ||= Boolean(soft);
          const completion = yield* tap(next(request), ({ event }) => {
            if (event === "on_chat_model_stream") spokeAt ??= performance.now();
          });
          isSettled = true;
          await settle(usageOf(completion, request));
          return completion;
        } finally {
          // A failure to settle must not hide the error that ended the call.
          const isPaid = spokeAt !== undefined || request.signal.aborted;
          if (!isSettled) await settle(isPaid ? usageSoFar(request, spokeAt) : undefined).catch(() => {});
        }
      },
    };
  },
});

/** Waits while other calls have reserved the rest. Throws a `RunLimit` when the budget is used up. */
async function* admitted(request: ModelRequest, run: Run, quotas: ModelCallQuotas) {
  const { model, signal } = request;
  const usage = {
    ...NO_USAGE,
    input_tokens: estimateRequest(request),
    output_tokens: answerTokens(request),
  };
  const until = performance.now() + PATIENCE_MS;
  for (let pause = PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    const reservation = await quotas.reserve(run.owner, { model: model.name, usage });
    if (reservation.isGranted) return reservation;
    if (reservation.isSpent || performance.now() + pause > until) {
      yield warning("quota", reservation.error.message);
      throw new RunLimit("quota", reservation.error.message);
    }
    await sleep(pause * (0.75 + Math.random() / 2), undefined, { signal });
  }
}

/** Estimates the usage when the provider reports none. */
function usageOf({ message }: Completion, request: ModelRequest): Usage {
  const { usage } = message;
  if (usage && usage.input_tokens + usage.output_tokens > 0) return usage;
  return {
    ...NO_USAGE,
    input_tokens: estimateRequest(request),
    output_tokens: estimateTokens([message]),
  };
}

/** Estimates an aborted call by its duration: looking at each token would cost too much. */
function usageSoFar(request: ModelRequest, spokeAt: number | undefined): Usage {
  const seconds = spokeAt === undefined ? 0 : (performance.now() - spokeAt) / 1000;
  const output_tokens = Math.min(Math.ceil(seconds * TOKENS_A_SECOND), answerTokens(request));
  return { ...NO_USAGE, input_tokens: estimateRequest(request), output_tokens };
}

/** The answer's maximum. */
function answerTokens({ settings }: ModelRequest): number {
  return Math.min(settings.max_tokens ?? ANSWER_TOKENS, LONGEST_ANSWER_TOKENS);
}
