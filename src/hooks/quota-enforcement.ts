// Enforces the quotas of the tenant and the user: reserves budget before each model call, limits the answer to what was
// reserved, and settles it with the actual usage. Near a limit viewers get one `warning` per run; at the limit the run ends
// with `done` and the reason `quota`. Every call counts: answers, summaries, retries, calls that end early. Without quotas
// the hook has no layers.

import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { RunLimit } from "../core/errors.ts";
import { type StreamEvent, warning } from "../core/event.ts";
import { defineHook, type ModelCallQuotas } from "../core/hook.ts";
import { BYTES_A_TOKEN, estimateTokens, NO_USAGE, textSize, type Usage } from "../core/message.ts";
import { type Completion, DEFAULT_MAX_TOKENS, type ModelRequest } from "../core/model.ts";
import { reportFailure } from "../core/run.ts";
import { tap, tapDeltas } from "../core/stream.ts";
import type { Run } from "../core/tool.ts";
import { estimateRequest } from "./summarization/projection.ts";

/** The most that any model answers. */
const LONGEST_ANSWER_TOKENS = 128_000;
/** A default limit leaves the input its part of the context window, and the answer at least so much. */
const LEAST_DEFAULT_TOKENS = 1024;
/** The input is reserved with a margin, as no estimate is exact: few languages and codes take less than three bytes a token. */
const INPUT_MARGIN = 4 / 3;
/** Assumed speed of thinking that is not shown. Most models are slower. */
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
    const limitOf = (request: ModelRequest) => answerLimit(request, agent.context_window);
    let wasWarned = false;

    return {
      name: "metering",

      async *wrapModelCall(request, next, run, deltas) {
        const { id, soft, outputLimit } = yield* admitted(request, { run, quotas, limitOf });
        const settle = (usage?: Usage) =>
          quotas.settle(run.owner, id, usage && { agent: agent.name, model: request.model.name, usage });
        let heard: Heard | undefined;
        let counted: Usage | undefined;
        let isSettled = false;
        try {
          if (soft && !wasWarned) yield warning("quota", soft);
          wasWarned ||= Boolean(soft);
          request.signal.throwIfAborted();
          heard = listen();
          const onPartialUsage = (usage: Usage) => {
            counted = usage;
          };
          const limited = { ...request, onPartialUsage, ...(outputLimit ? { outputLimit } : {}) };
          const completion = yield* tap(next(limited, tapDeltas(deltas, heard.take)), heard.take);
          isSettled = true;
          await settle(usageOf(completion, request));
          return completion;
        } finally {
          if (!isSettled) {
            const isPaid = counted || heard?.hasBegun() || request.signal.aborted;
            const most = outputLimit ?? request.model.outputLimit?.(request) ?? LONGEST_ANSWER_TOKENS;
            const usage =
              heard && isPaid ? usageSoFar(request, { counted, heard: heard.tokens(), most }) : undefined;
            // A failure to settle must not hide the error that ended the call.
            await settle(usage).catch((error) =>
              reportFailure(run, { what: "hook", hook: "metering", error, model: request.model.name }),
            );
          }
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

/** Waits while other calls have reserved the rest. Throws a `RunLimit` when the budget is used up. */
async function* admitted(request: ModelRequest, { run, quotas, limitOf }: Admission) {
  const { model, signal } = request;
  const size = () => ({
    input: Math.ceil(estimateRequest(request) * INPUT_MARGIN),
    output: limitOf(request),
  });
  const until = performance.now() + PATIENCE_MS;
  for (let pause = PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    const takesLess = performance.now() + pause > until;
    const reservation = await quotas.reserve(run.owner, { model: model.name, size, takesLess });
    if (reservation.isGranted) return reservation;
    if (reservation.isSpent || takesLess) {
      yield warning("quota", reservation.error.message);
      throw new RunLimit("quota", reservation.error.message);
    }
    await sleep(pause * (0.75 + Math.random() / 2), undefined, { signal });
  }
}

/** The answer's maximum, thinking included. */
function answerLimit(request: ModelRequest, contextWindow: number): number {
  const configured = request.model.outputLimit
    ? request.model.outputLimit(request)
    : request.settings.max_tokens;
  if (configured !== undefined) return Math.min(configured, LONGEST_ANSWER_TOKENS);
  const room = contextWindow - estimateRequest(request);
  return Math.min(DEFAULT_MAX_TOKENS, Math.max(room, LEAST_DEFAULT_TOKENS));
}

/** Estimates what the provider does not report. */
function usageOf({ message }: Completion, request: ModelRequest): Usage {
  const usage = message.usage ?? NO_USAGE;
  return {
    ...usage,
    input_tokens: usage.input_tokens || estimateRequest(request),
    output_tokens: usage.output_tokens || estimateTokens([message]),
  };
}

interface Heard {
  readonly take: (event: StreamEvent) => void;
  hasBegun(): boolean;
  /** An estimate of the answer so far, including thinking that is not shown. */
  tokens(): number;
}

/** Measures an answer as it passes. */
function listen(): Heard {
  const asked = performance.now();
  let spoke: number | undefined;
  let thought = 0;
  let said = 0;
  return {
    take({ event, data }) {
      if (event !== "on_chat_model_stream") return;
      if ("reasoning_delta" in data) {
        thought += textSize(data.reasoning_delta);
        return;
      }
      spoke ??= performance.now();
      said += textSize("delta" in data ? data.delta : data.tool_call.args_delta);
    },
    hasBegun: () => spoke !== undefined || thought > 0,
    tokens() {
      // Thinking may come in full, in short or not at all.
      const silence = ((spoke ?? performance.now()) - asked) / 1000;
      return Math.ceil(Math.max(thought / BYTES_A_TOKEN, silence * TOKENS_A_SECOND) + said / BYTES_A_TOKEN);
    },
  };
}

interface SoFar {
  readonly counted: Usage | undefined;
  readonly heard: number;
  readonly most: number;
}

/** The usage of a call that ended early: the larger of the provider's count and of the estimate. */
function usageSoFar(request: ModelRequest, { counted = NO_USAGE, heard, most }: SoFar): Usage {
  return {
    ...counted,
    input_tokens: counted.input_tokens || estimateRequest(request),
    output_tokens: Math.max(counted.output_tokens, Math.min(heard, most)),
  };
}
