// Enforces the quotas of the tenant and the user. Before each model call, the hook reserves budget. It limits the answer to
// the reservation and settles the reservation with the actual usage. Near a limit, viewers get one `warning` per run. At the
// limit, the run ends with `done` and the reason `quota`. Every call counts, including summaries, retries and calls that end
// early. Without quotas, the hook has no layers.

import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { warning } from "../../protocol/event.ts";
import { RunLimit } from "../core/errors.ts";
import { defineHook, type ModelCallQuotas } from "../core/hook.ts";
import { estimateTokens, NO_USAGE, type Usage } from "../core/message.ts";
import { DEFAULT_MAX_TOKENS, type ModelRequest, type UsageMeter } from "../core/model.ts";
import { searchesPlanned, withSearchLimit } from "../core/own-search.ts";
import { reportFailure } from "../core/run.ts";
import type { Run } from "../core/tool.ts";
import { estimateFixed, estimateRequest, LONGEST_ANSWER_TOKENS, withMargin } from "../core/usage-meter.ts";

/**
 * The minimum number of tokens for an answer if the limit is derived from the context window and the size of
 * the input.
 */
const LEAST_DEFAULT_TOKENS = 1024;
/** The maximum time to wait for budget that other calls have reserved, in ms. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

export const metering = defineHook({
  name: "metering",
  options: z.strictObject({}),
  activeByDefault: () => true,
  create(_, { agent, quotas }) {
    if (!quotas) return { name: "metering" };
    const limitOf = (request: ModelRequest) => answerLimit(request, agent.context_window);
    let wasWarned = false;

    return {
      name: "metering",

      async *wrapModelCall(request, next, run, deltas) {
        const { id, soft, outputLimit, searchLimit } = yield* admitted(request, { run, quotas, limitOf });
        const settle = (usage?: Usage) =>
          quotas.settle(run.owner, id, usage && { agent: agent.name, model: request.model.name, usage });
        let meter: UsageMeter | undefined;
        let isSettled = false;
        try {
          if (soft && !wasWarned) yield warning("quota", soft);
          wasWarned ||= Boolean(soft);
          request.signal.throwIfAborted();
          const onMeter = (begun: UsageMeter) => {
            meter = begun;
          };
          const limited = {
            ...request,
            onMeter,
            ...(outputLimit ? { outputLimit } : {}),
            ...(searchLimit === undefined ? {} : { tools: withSearchLimit(request.tools, searchLimit) }),
          };
          const completion = yield* next(limited, deltas);
          isSettled = true;
          await settle(completion.message.usage ?? NO_USAGE);
          return completion;
        } finally {
          // A failure to settle must not hide the error that ended the call.
          if (!isSettled)
            await settle(meter?.soFar()).catch((error) =>
              reportFailure(run, { what: "hook", hook: "metering", error, model: request.model.name }),
            );
        }
      },
    };
  },
});

interface Admission {
  readonly run: Run;
  readonly quotas: ModelCallQuotas;
  limitOf(request: ModelRequest): number;
}

/**
 * Waits while other calls have reserved the remaining budget. Throws a `RunLimit` when the budget is used up.
 */
async function* admitted(request: ModelRequest, { run, quotas, limitOf }: Admission) {
  const { model, signal } = request;
  const size = () => {
    const fixed = estimateFixed(request);
    const input = withMargin(fixed + estimateTokens(request.messages));
    const searches = searchesPlanned(request);
    return { input, fixed: withMargin(fixed), output: limitOf(request), searches };
  };
  const caller = { agent: run.agent, threadId: run.threadId };
  const until = performance.now() + PATIENCE_MS;
  for (let pause = PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    const takesLess = performance.now() + pause > until;
    const reservation = await quotas.reserve(run.owner, { model: model.name, caller, size, takesLess });
    if (reservation.isGranted) return reservation;
    if (reservation.isSpent || takesLess) {
      const { message, details } = reservation.error;
      yield warning("quota", message);
      throw new RunLimit("quota", message, details);
    }
    await sleep(pause * (0.75 + Math.random() / 2), undefined, { signal });
  }
}

/** Returns the maximum number of tokens in the answer, including thinking. */
function answerLimit(request: ModelRequest, contextWindow: number): number {
  const configured = request.model.outputLimit
    ? request.model.outputLimit(request)
    : request.settings.max_tokens;
  if (configured !== undefined) return Math.min(configured, LONGEST_ANSWER_TOKENS);
  const room = contextWindow - estimateRequest(request);
  return Math.min(DEFAULT_MAX_TOKENS, Math.max(room, LEAST_DEFAULT_TOKENS));
}
