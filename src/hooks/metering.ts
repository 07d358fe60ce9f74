// Holds every model call against the quotas of the run's tenant and user: what it may use is reserved before it, and
// settled with what it used. When most of a budget is used up viewers get a `warning`, once in a run; when all of it is
// the run ends with `done` and the reason `quota`, and what was done is kept. A call of whatever kind counts: an answer,
// a summary, a second attempt, one that is cut off. Without quotas the hook has no layers.

import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { RunLimit } from "../core/errors.ts";
import { type StreamEvent, warning } from "../core/event.ts";
import { defineHook } from "../core/hook.ts";
import { NO_USAGE, type Usage } from "../core/message.ts";
import type { ModelRequest } from "../core/model.ts";
import { tokensOf } from "../core/quota-store.ts";
import type { Quotas } from "../core/quotas.ts";
import type { Run } from "../core/run.ts";
import type { Stream } from "../core/stream.ts";
import { estimateRequest } from "./summarization/tokens.ts";

/** What a model may answer that was told no limit. */
const ANSWER_TOKENS = 8192;
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

    async function* reserve(request: ModelRequest, run: Run, books: Quotas): Stream<string> {
      const { isGranted, id, soft } = yield* admitted(request, run, books);
      if (isGranted && soft && !wasWarned) {
        wasWarned = true;
        yield warning("quota", soft);
      }
      return id;
    }

    return {
      name: "metering",

      async *wrapModelCall(request, next, run) {
        const id = yield* reserve(request, run, quotas);
        let charged: Usage | undefined;
        let characters = 0;
        const settle = (usage: Usage | undefined) =>
          quotas.settle(
            run.owner,
            id,
            usage && { agent: agent.name, model: request.model.name, usage },
          );
        const stream = next(request);
        try {
          let item = await stream.next();
          for (; !item.done; item = await stream.next()) {
            characters += lengthOf(item.value);
            yield item.value;
          }
          const { usage = NO_USAGE } = item.value.message;
          // Some providers count nothing.
          charged = tokensOf(usage) > 0 ? usage : estimate(request, characters);
          await settle(charged);
          return item.value;
        } finally {
          // Nobody reads what a `return` gives back.
          await stream.return(undefined as never);
          const isPaid = characters > 0 || request.signal.aborted;
          // What ended the call is what is told, not that it could not be counted.
          if (!charged) await settle(isPaid ? estimate(request, characters) : undefined).catch(() => {});
        }
      },
    };
  },
});

/** Waits while others hold what is left. Throws a `RunLimit` when nothing is left. */
async function* admitted({ model, settings, ...request }: ModelRequest, run: Run, quotas: Quotas) {
  const usage = {
    ...NO_USAGE,
    input_tokens: estimateRequest({ model, settings, ...request }),
    output_tokens: settings.max_tokens ?? ANSWER_TOKENS,
  };
  const until = performance.now() + PATIENCE_MS;
  for (let pause = PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    const reservation = await quotas.reserve(run.owner, { model: model.name, usage });
    if (reservation.isGranted) return reservation;
    if (reservation.isSpent || performance.now() + pause > until) {
      yield warning("quota", reservation.error.message);
      throw new RunLimit("quota", reservation.error.message);
    }
    await sleep(pause * (0.75 + Math.random() / 2), undefined, { signal: request.signal });
  }
}

/** What a call has cost, as far as one can tell that did not see its end. */
function estimate(request: ModelRequest, characters: number): Usage {
  return {
    ...NO_USAGE,
    input_tokens: estimateRequest(request),
    output_tokens: Math.ceil(characters / 4),
  };
}

function lengthOf(event: StreamEvent): number {
  if (event.event !== "on_chat_model_stream") return 0;
  const { data } = event;
  if ("delta" in data) return data.delta.length;
  if ("reasoning_delta" in data) return data.reasoning_delta.length;
  return data.tool_call.args_delta.length;
}
