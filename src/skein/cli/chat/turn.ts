// A turn in a chat: follows a run and all runs that resume it.

import {
  type Answer,
  type Client,
  type FollowOptions,
  type Interrupt,
  ProblemError,
  type RunOptions,
  type StreamEvent,
} from "../../../client/client.ts";
import { t } from "../texts.ts";

/** A thread on a server. */
export interface ConnectedThread {
  readonly client: Client;
  readonly url: string;
  readonly thread: string;
  /** The options of each run. */
  readonly run: Pick<RunOptions, "agent" | "model">;
}

export interface TurnOptions extends Pick<ConnectedThread, "client"> {
  /** If undefined, the run gets its own thread. */
  readonly thread: string | undefined;
  readonly show: (event: StreamEvent) => void;
  /** Prints a line that does not come from the agent. The line has no styles yet. */
  readonly tell: (line: string) => void;
  /** Returns `undefined` if the questions stay open. */
  readonly answer: (asked: readonly Interrupt[]) => Promise<Answer[] | undefined>;
  /** Calls `press` for each Ctrl-C. Returns a function that unsubscribes. */
  readonly onPress: (press: () => void) => () => void;
  /** The effects of the first, second and subsequent presses of Ctrl-C. One more press stops following the run. */
  readonly stops: readonly Stop[];
  /** Aborts when no one reads the output any more. The run continues. */
  readonly signal?: AbortSignal;
  /** `turn` also follows the run that continues once a deferred tool call has its result. */
  readonly unit: "run" | "turn";
}

export interface Stop {
  readonly mode: "interrupt" | "cancel";
  readonly told: string;
}

export type Start = (signal: AbortSignal, options: FollowOptions) => AsyncIterable<StreamEvent>;

/** Returns a function that sends a message. */
export const sending =
  ({ client, thread, run }: ConnectedThread, input: string): Start =>
  (signal, options) =>
    client.run(thread, { ...run, input }, signal, options);

/** Does the same in a new thread, which the server deletes after the run. */
export const sendingOnce =
  ({ client, run }: Pick<ConnectedThread, "client" | "run">, input: string): Start =>
  (signal, options) =>
    client.runs.stream({ ...run, input, keep_thread: false }, signal, options);

/**
 * How a turn ended. `waiting`: waits for answers. `stopped`: stopped by Ctrl-C. `refused`: the server refused the
 * message as an invalid request. A turn that reaches a limit, is cancelled elsewhere or loses its connection has
 * `failed`.
 */
export type TurnEnding = "answered" | "failed" | "waiting" | "stopped" | "refused";

/** Follows a turn to its end and prints why it failed, if it did. Never throws. */
export async function runTurn(options: TurnOptions, start: Start): Promise<TurnEnding> {
  const { client, answer } = options;
  for (let next = start; ; ) {
    const { ending, runId, thread, asked } = await followRun(options, next);
    if (ending !== "waiting" || runId === undefined || thread === undefined) return ending;
    const answers = await answer(asked);
    if (!answers) return ending;
    next = (signal, follow) => client.resume(thread, runId, answers, signal, follow);
  }
}

interface ChatRun {
  readonly ending: TurnEnding;
  readonly runId: string | undefined;
  readonly thread: string | undefined;
  /** The open questions of the run. */
  readonly asked: readonly Interrupt[];
}

async function followRun(options: TurnOptions, start: Start): Promise<ChatRun> {
  const { show, tell, onPress, signal, unit } = options;
  const asked: Interrupt[] = [];
  const stopping = stopper(options);
  const release = onPress(stopping.press);
  const leaving = AbortSignal.any([stopping.signal, ...(signal ? [signal] : [])]);
  let last: StreamEvent | undefined;
  try {
    for await (const event of start(leaving, { onStarted: stopping.onStarted, unit })) {
      show(event);
      if (event.path && event.path.length > 0) continue;
      // The parent repeats the questions of its subagents.
      if (event.event === "on_interrupt") asked.push(event.data);
      if (event.event === "run_start" && event.run_id !== undefined) stopping.onStarted(event.run_id);
      last = event;
    }
  } catch (error) {
    const refusal = error instanceof ProblemError ? error : undefined;
    if (refusal) tell(`✗ ${refusal.message} (${refusal.code})`);
    else if (!leaving.aborted) tell(`✗ ${t().chat.connectionFailed(String(error))}`);
    if (refusal?.code === "invalid_request")
      return { ending: "refused", runId: undefined, thread: undefined, asked };
  } finally {
    release();
  }
  const ending = stopping.hasStopped() ? "stopped" : endingOf(last, asked);
  return { ending, runId: stopping.runId(), thread: stopping.thread(), asked };
}

function endingOf(last: StreamEvent | undefined, asked: readonly Interrupt[]): TurnEnding {
  if (last?.event !== "done") return "failed";
  if (last.data.status === "success") return "answered";
  return last.data.status === "interrupted" && asked.length > 0 ? "waiting" : "failed";
}

/** Applies Ctrl-C to a single run. */
function stopper({ client, thread: known, tell, stops }: TurnOptions) {
  const leaving = new AbortController();
  let thread = known;
  let runId: string | undefined;
  let presses = 0;
  // A run that has already ended does not need to be stopped.
  const stop = (id: string, { mode }: Stop) =>
    thread !== undefined && void client.stop(thread, id, mode).catch(() => {});
  return {
    signal: leaving.signal,
    runId: () => runId,
    thread: () => thread,
    hasStopped: () => presses > 0,
    onStarted(id: string, itsThread = thread) {
      thread = itsThread;
      const [first] = stops;
      if (runId === undefined && presses > 0 && first) stop(id, first);
      runId = id;
    },
    press() {
      // If the server has not confirmed the run yet, the run is stopped after the confirmation.
      const next = runId === undefined && presses > 0 ? undefined : stops[presses];
      presses++;
      tell(`(${next?.told ?? t().chat.left})`);
      if (!next) leaving.abort();
      else if (runId !== undefined) stop(runId, next);
    },
  };
}

/** Reports only the third attempt, because short interruptions are common. */
export const retrying = (tell: (line: string) => void) => (reason: Error, attempt: number) => {
  if (attempt === 3) tell(t().chat.retrying(reason.message));
};
