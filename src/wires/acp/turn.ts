// Handles one prompt: shows a run, and all runs that resume it, in the editor as they progress. The user can stop it at
// any time.

import type { SessionUpdate, StopReason } from "@agentclientprotocol/sdk";
import type { Answer, Client, FollowOptions, Interrupt, StreamEvent } from "../../client/client.ts";
import { type End, trackEnd } from "../../protocol/end.ts";
import type { AskResult } from "./asking.ts";
import { runError } from "./errors.ts";
import type { UpdateFold } from "./table.ts";

export interface TurnOptions {
  readonly client: Client;
  readonly thread: string;
  readonly fold: UpdateFold;
  /** Resolves once the editor can accept more. */
  readonly show: (update: SessionUpdate) => Promise<void>;
  readonly ask: (interrupt: Interrupt) => Promise<AskResult>;
  readonly sayQuestion: (interrupt: Interrupt) => Promise<void>;
  /** Aborts when the user stops the turn. */
  readonly stopped: AbortSignal;
  /** Aborts when the editor has disconnected. */
  readonly signal: AbortSignal;
}

export type Start = (signal: AbortSignal, options: FollowOptions) => AsyncIterable<StreamEvent>;

/** Throws if the run fails, unless the user stopped it. */
export async function runTurn(options: TurnOptions, start: Start): Promise<StopReason> {
  const { client, thread, fold, show, stopped, sayQuestion } = options;
  let isWaiting = false;
  try {
    for (let next = start; ; ) {
      const { runId, end } = await followRun(options, next);
      if (end?.as !== "asks" || runId === undefined) return stopped.aborted ? "cancelled" : reasonOf(end);
      const asked = end.questions;
      const answers = await answersTo(options, asked);
      if (answers === "cancelled") {
        await client.stop(thread, runId);
        return "cancelled";
      }
      const [first] = asked;
      if (answers.length === 0 && first) {
        isWaiting = true;
        await sayQuestion(first);
        return "end_turn";
      }
      next = (signal, follow) => client.resume(thread, runId, answers, signal, follow);
    }
  } catch (error) {
    if (stopped.aborted) return "cancelled";
    throw error;
  } finally {
    if (!isWaiting) for (const update of fold.closing()) await show(update);
  }
}

interface PromptRun {
  readonly runId: string | undefined;
  readonly end: End | undefined;
}

/** Shows a run until it ends. If the user stops the turn, cancels the run but keeps showing it until it ends. */
async function followRun(
  { client, thread, fold, show, stopped, signal }: TurnOptions,
  start: Start,
): Promise<PromptRun> {
  const leaving = new AbortController();
  const track = trackEnd();
  let runId: string | undefined;
  let end: End | undefined;
  const stop = () => {
    // If the run is unreachable, it is not stopped. If it has ended meanwhile, it does not need to be stopped.
    if (runId !== undefined) client.stop(thread, runId).catch(() => leaving.abort());
  };
  stopped.addEventListener("abort", stop);
  try {
    const onStarted = (id: string) => {
      runId = id;
      if (stopped.aborted) stop();
    };
    const following = AbortSignal.any([signal, leaving.signal]);
    for await (const event of start(following, { onStarted, unit: "turn" })) {
      for (const update of fold.updatesOf(event)) await show(update);
      if (event.event === "on_chat_model_stream" || (event.path && event.path.length > 0)) continue;
      runId = event.run_id ?? runId;
      end = track(event) ?? end;
      if (end?.as === "failed") throw runError(end.reason, end.message);
    }
  } finally {
    stopped.removeEventListener("abort", stop);
  }
  return { runId, end };
}

/** Asks the interrupts in order and returns the answers. Skips interrupts that the editor cannot show. */
async function answersTo(
  { ask, show }: TurnOptions,
  asked: readonly Interrupt[],
): Promise<Answer[] | "cancelled"> {
  const answers: Answer[] = [];
  for (const interrupt of asked) {
    const answer = await ask(interrupt);
    // Updates the entry of a subagent's question. The call itself continues without being shown.
    if (interrupt.asked_by && answer !== "words") {
      const isAllowed = answer !== "cancelled" && answer.decision !== "deny";
      const status = isAllowed ? "completed" : "failed";
      await show({ sessionUpdate: "tool_call_update", toolCallId: interrupt.id, status });
    }
    if (answer === "cancelled") return "cancelled";
    if (answer !== "words") answers.push(answer);
  }
  return answers;
}

const REASONS: Readonly<Record<string, StopReason>> = {
  max_tokens: "max_tokens",
  token_budget: "max_tokens",
  max_iterations: "max_turn_requests",
  refusal: "refusal",
  cancelled: "cancelled",
};

function reasonOf(end: End | undefined): StopReason {
  if (!end) return "end_turn";
  if (end.as === "cancelled") return "cancelled";
  const reason = REASONS[end.reason];
  if (end.as === "limit" && !reason) throw runError(end.reason, end.message);
  return reason ?? "end_turn";
}
