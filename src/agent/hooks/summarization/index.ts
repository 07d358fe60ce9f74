// Keeps a conversation within the model's context window. The model sees a summary and the most recent messages. The thread
// keeps all messages and stores the summary until the next one is due.

import { z } from "zod";
import { warning } from "../../../protocol/event.ts";
import { AppError, endsTheRun } from "../../core/errors.ts";
import { type CallModel, defineHook } from "../../core/hook.ts";
import { estimateTokens } from "../../core/message.ts";
import type { ModelRequest } from "../../core/model.ts";
import { reportFailure, setState } from "../../core/run.ts";
import type { Stream } from "../../core/stream.ts";
import type { Run } from "../../core/tool.ts";
import { estimateRequest } from "../../core/usage-meter.ts";
import { countTokens, cutPoint, STATE_KEY, type Summary, viewOf } from "./projection.ts";
import { isOverflow, summarize } from "./summarize.ts";
import { fitted } from "./truncate.ts";

/** The minimum fraction (0–1) of the window that a summary must cover. */
const WORTH_IT = 0.1;
/** The smallest window to assume after a rejection, in tokens. */
const MIN_WINDOW = 1000;

const Options = z.strictObject({
  trigger: z
    .number()
    .gt(0)
    .max(1)
    .default(0.85)
    .describe(
      "Fraction of the context window (0–1) that a request can fill before a summary replaces older messages.",
    ),
  keep: z
    .number()
    .gt(0)
    .max(0.9)
    .default(0.1)
    .describe("Fraction of the messages (0–1) to keep unchanged. At least two messages are kept."),
});

export const summarization = defineHook({
  name: "summarization",
  userMay: "configure",
  options: Options,
  activeByDefault: () => true,
  create({ trigger, keep }, { agent }) {
    /**
     * The window in tokens. It becomes smaller than the configured window once the model has rejected a
     * smaller request.
     */
    let window = agent.context_window;
    /** Set when a summary has failed. The run then tries again only if the model rejects the request. */
    let failed = false;

    /** Reduces the request to `limit` tokens, as far as possible. */
    async function* reduce(call: Call, least: number, limit: number): Stream<ModelRequest> {
      const { request, run, tokens, shown } = call;
      // The provider's count scales the estimates, because these are too low for some languages.
      const scale = Math.max(1, tokens / estimateRequest(shown));
      const sizes = {
        keep,
        least: least / scale,
        room: (trigger * window) / 2 / scale,
        window: window / scale,
      };
      if (!failed) failed = yield* compact(call, sizes);
      return fitted({ ...request, messages: viewOf(request.messages, run.state).messages }, limit / scale);
    }

    return {
      name: "summarization",
      async *wrapModelCall(request, next, run, deltas) {
        const view = viewOf(request.messages, run.state);
        const shown = { ...request, messages: view.messages };
        const tokens = countTokens(view, shown);
        const call = { request, next, run, tokens, shown };
        const first = tokens > trigger * window ? yield* reduce(call, WORTH_IT * window, window) : shown;
        try {
          return yield* next(first, deltas);
        } catch (error) {
          if (!isOverflow(error) || request.signal.aborted) throw error;
          window = Math.max(MIN_WINDOW, Math.min(window, Math.max(tokens, estimateRequest(first))));
          failed = false;
          const second = yield* reduce(call, 1, window / 2);
          // If the second request is not smaller, the provider would reject it too.
          if (estimateRequest(second) >= estimateRequest(first)) throw error;
          return yield* next(second, deltas);
        }
      },
    };
  },
});

interface Call {
  readonly request: ModelRequest;
  readonly next: CallModel;
  readonly run: Run;
  /** The request with the messages that the model sees so far. */
  readonly shown: ModelRequest;
  /** The number of tokens in `shown`. */
  readonly tokens: number;
}

/** All sizes are estimated numbers of tokens, except `keep`, which is a fraction. */
interface Sizes {
  readonly keep: number;
  /** The minimum number of tokens that a summary must cover. */
  readonly least: number;
  /** The maximum number of tokens to leave unsummarized. */
  readonly room: number;
  readonly window: number;
}

/** Creates the thread's next summary if it would cover enough. Returns true if creating it failed. */
async function* compact({ request, next, run, tokens }: Call, sizes: Sizes): Stream<boolean> {
  const { tail, summary } = viewOf(request.messages, run.state);
  const messages = tail.slice(0, cutPoint(tail, sizes.keep, sizes.room));
  const inThread = new Set(run.messages.map(({ id }) => id));
  const up_to = messages.findLast(({ id }) => inThread.has(id))?.id;
  const seen = tail.findLast(({ id }) => inThread.has(id))?.id;
  if (!up_to || !seen || estimateTokens(messages) < sizes.least) return false;
  try {
    const text = await summarize({ request, next, messages, earlier: summary?.text, budget: sizes.window });
    yield* setState(run, STATE_KEY, { up_to, seen, text, tokens_before: tokens } satisfies Summary);
    yield warning("context_compacted", told(messages.length, tokens));
    return false;
  } catch (error) {
    if (request.signal.aborted || endsTheRun(error)) throw error;
    reportFailure(run, { what: "hook", hook: "summarization", error, model: request.model.name });
    yield warning(
      "summarization_failed",
      `The conversation could not be summarized: ${AppError.from(error).message}`,
    );
    return true;
  }
}

function told(messages: number, tokens: number): string {
  return `The conversation grew too long for the model (${tokens} tokens): ${messages} older messages are now summarized.`;
}
