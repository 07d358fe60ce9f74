// Holds every model call against the quotas of the run's tenant and user: what it may use is reserved before it, and
// settled with what it used. When most of a budget is used up viewers get a `warning`, once in a run; when all of it is
// the run ends with `done` and the reason `quota`, and what was done is kept. A call of whatever kind counts: an answer,
// a summary, a second attempt, one that is cut off. Without quotas the hook has no layers.

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

/** What a model may answer that was told no limit, and the most that any model answers. */
const ANSWER_TOKENS = 8192;
const LONGEST_ANSWER_TOKENS = 128_000;
/** How fast a model speaks of which only that is known how long it spoke. */
const TOKENS_A_SECOND = 100;
/** How long a call waits for budget that is reserved for others, in ms. */
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
          // What ended the call is what is told, not that it could not be counted.
          const isPaid = spokeAt !== undefined || request.signal.aborted;
          if (!isSettled) await settle(isPaid ? usageSoFar(request, spokeAt) : undefined).catch(() => {});
        }
      },
    };
  },
});

/** Waits while others have reserved what is left. Throws a `RunLimit` when nothing is left. */
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

/** As the provider counted; some count nothing. */
function usageOf({ message }: Completion, request: ModelRequest): Usage {
  const { usage } = message;
  if (usage && usage.input_tokens + usage.output_tokens > 0) return usage;
  return {
    ...NO_USAGE,
    input_tokens: estimateRequest(request),
    output_tokens: estimateTokens([message]),
  };
}

/** What a call has cost of which nobody saw the end: each event by itself would be too dear to look at. */
function usageSoFar(request: ModelRequest, spokeAt: number | undefined): Usage {
  const seconds = spokeAt === undefined ? 0 : (performance.now() - spokeAt) / 1000;
  const output_tokens = Math.min(Math.ceil(seconds * TOKENS_A_SECOND), answerTokens(request));
  return { ...NO_USAGE, input_tokens: estimateRequest(request), output_tokens };
}

/** The most that the answer may take. */
function answerTokens({ settings }: ModelRequest): number {
  return Math.min(settings.max_tokens ?? ANSWER_TOKENS, LONGEST_ANSWER_TOKENS);
}
