// Limits the tokens and the duration of one run. Near a limit, the hook asks the model to finish. At the limit, the run ends
// with `done` and the reason. Earlier attempts of the run count as well, including the time between them.

import { z } from "zod";
import { steadyClock } from "../../lib/steady-clock.ts";
import { Seconds } from "../../lib/units.ts";
import { warning } from "../../protocol/event.ts";
import { type LimitReason, RunLimit } from "../core/errors.ts";
import { defineHook, type ToolRequest } from "../core/hook.ts";
import { setState } from "../core/run.ts";
import { type Stream, tap } from "../core/stream.ts";
import type { Run, ToolResult } from "../core/tool.ts";
import { reminders } from "./reminders.ts";

/** The state key for the start time of the thread's most recent run. */
const STATE_KEY = "budgets";
const Began = z.object({ run_id: z.string(), began_at: z.iso.datetime() });

interface Budget {
  readonly reason: LimitReason;
  readonly unit: "tokens" | "seconds";
  readonly limit: number;
  spent(run: Run): number;
}

export const budgets = defineHook({
  name: "budgets",
  options: z.strictObject({
    tokens: z
      .int()
      .min(0)
      .default(1_000_000)
      .describe("Maximum number of input and output tokens for all model calls of a run. 0 means no limit."),
    seconds: Seconds(86_400, (seconds) => seconds >= 0)
      .prefault(3600)
      .describe("Maximum duration of a run. 0 means no limit."),
    warn_at: z
      .number()
      .gt(0)
      .max(1)
      .default(0.8)
      .describe("Fraction of a budget (0–1) after which the model is asked to finish. 1 means never."),
  }),
  activeByDefault: () => false,
  create({ tokens, seconds, warn_at }) {
    const began = new Date().toISOString();
    const now = steadyClock(() => Date.now());
    const since = now();
    let before = 0;
    const used = ({ usage }: Run) => usage.input_tokens + usage.output_tokens;
    const elapsed = () => (before + now() - since) / 1000;
    const words: Budget = { reason: "token_budget", unit: "tokens", limit: tokens, spent: used };
    const time: Budget = { reason: "time_budget", unit: "seconds", limit: seconds, spent: elapsed };
    const budgets = [words, time].filter(({ limit }) => limit > 0);
    const told = new Set<Budget>();
    const notes = reminders();
    const inTime = <R extends Abortable, T>(request: R, next: (request: R) => Stream<T>) =>
      seconds === 0 ? next(request) : within(seconds - elapsed(), exhausted(time), { request, next });

    return {
      name: "budgets",

      async *beforeAgent(run) {
        if (seconds === 0) return;
        const known = Began.safeParse(run.state.get(STATE_KEY)).data;
        if (known?.run_id === run.id) before = Math.max(0, since - Date.parse(known.began_at));
        else yield* setState(run, STATE_KEY, { run_id: run.id, began_at: began });
      },

      async *wrapModelCall(request, next, run, deltas) {
        for (const budget of budgets) {
          const spent = budget.spent(run);
          if (spent >= budget.limit) throw exhausted(budget, spent);
          if (spent < warn_at * budget.limit || told.has(budget)) continue;
          told.add(budget);
          const state = `This run has used ${Math.floor(spent)} of its ${budget.limit} ${budget.unit}.`;
          yield warning(budget.reason, state);
          notes.add(`${state} ${FINISH}`, run);
        }
        const reminded = { ...request, messages: notes.among(request.messages) };
        return yield* inTime(reminded, (timed) => next(timed, deltas));
      },

      wrapToolCall: (request, next, run) =>
        inTime(request, (timed) =>
          tokens === 0 ? next(timed) : withinTokens({ request: timed, next }, words, run),
        ),
    };
  },
});

const FINISH = "Finish now. Do only what a useful answer requires, and tell the user what is left to do.";

function exhausted({ reason, unit, limit }: Budget, spent = limit): RunLimit {
  const details = { limit: `budgets.${unit}`, most: limit, used: inTenths(spent), left: 0 };
  return new RunLimit(reason, `The run has used up its ${limit} ${unit}.`, details);
}

const inTenths = (number: number) => Math.round(number * 10) / 10;

interface Abortable {
  readonly signal: AbortSignal;
}

interface WrappedCall<R, T> {
  readonly request: R;
  readonly next: (request: R) => Stream<T>;
}

/** Aborts a call whose subagents have used up the tokens, then throws. */
async function* withinTokens(
  { request, next }: WrappedCall<ToolRequest, ToolResult>,
  budget: Budget,
  run: Run,
): Stream<ToolResult> {
  const spent = new AbortController();
  const stream = next({ ...request, signal: AbortSignal.any([request.signal, spent.signal]) });
  try {
    const result = yield* tap(stream, ({ event, path }) => {
      if (event === "on_chat_model_end" && path && budget.spent(run) >= budget.limit)
        spent.abort(exhausted(budget));
    });
    spent.signal.throwIfAborted();
    return result;
  } catch (error) {
    throw spent.signal.aborted && !request.signal.aborted ? spent.signal.reason : error;
  }
}

/** Aborts a step after this number of seconds, then throws `limit`. */
async function* within<R extends Abortable, T>(
  seconds: number,
  limit: RunLimit,
  { request, next }: WrappedCall<R, T>,
): Stream<T> {
  if (seconds <= 0) throw limit;
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(limit), seconds * 1000);
  try {
    return yield* next({ ...request, signal: AbortSignal.any([request.signal, deadline.signal]) });
  } catch (error) {
    throw deadline.signal.aborted && !request.signal.aborted ? limit : error;
  } finally {
    clearTimeout(timer);
  }
}
