// Converts a call of `run_agent` or `answer` to MCP messages: progress, questions to the client's user, and finally the
// call's result.

import type { RunRecord } from "../../agent/core/records.ts";
import { trackTurn } from "../../engine/runs/turn.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { firstChars } from "../../lib/text.ts";
import type { End } from "../../protocol/end.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import type { Interrupt } from "../../protocol/interrupt.ts";
import { readTurn } from "../../protocol/turn-reader.ts";
import type { Frame } from "../../server/http/sse.ts";
import type { Fold } from "../fold.ts";
import { type RpcId, rpcResult } from "../json-rpc.ts";
import { shownInterrupt } from "../shown.ts";
import { askingOf, canShow, finishedAt, formOf, type Shows } from "./elicitation.ts";

/** How the client receives a run's questions: within the call, as the call's result, or not at all. */
export type QuestionMode = "within" | "as_result" | "never";

export interface ProjectOptions {
  /** The id of the client's request. */
  readonly id: RpcId;
  /** The client's token for the progress of the call, or undefined if the client requests no progress. */
  readonly progressToken: RpcId | undefined;
  readonly asking: QuestionMode;
  readonly shows: Shows;
  /** True if results include their type, as in revisions since 2026-07-28. */
  readonly namesType: boolean;
  /** Returns the prefix of the frames' ids, based on the call's first run. Undefined if the client cannot reconnect. */
  readonly cursorOf: ((run: RunRecord) => string) | undefined;
}

export interface CallProjection {
  readonly fold: Fold;
  /** Returns a frame that keeps a silent call alive. If undefined, a comment is sent. */
  readonly beat: (() => Frame) | undefined;
  /** Creates a function for each run that returns true for the event that ends the call. */
  readonly end: () => (event: StreamEvent) => boolean;
}

export interface CallOutcome {
  readonly thread_id: string;
  readonly run_id: string;
  readonly status: string;
  readonly text: string;
  readonly interrupts?: readonly object[];
  readonly error?: { readonly code: string; readonly message: string };
}

export function project(options: ProjectOptions): CallProjection {
  const { id, progressToken, asking, shows, namesType, cursorOf } = options;
  let cursor: string | undefined;
  let sent = 0;
  let beats = 0;
  let text = "";
  /** The text of the message in progress. */
  let partial = "";
  let agent = "";
  /** The last question to the client, and its thread. */
  let last: { readonly thread_id: string; readonly question: Interrupt } | undefined;

  const frame = (message: object): Frame => {
    const data = JSON.stringify(message);
    sent++;
    beats = 0;
    return cursor === undefined ? { data } : { id: `${cursor}.${sent}`, data };
  };
  const progressed = (message: string): Frame[] => {
    if (progressToken === undefined) return [];
    return [frame(progressMessage(progressToken, sent + 1, message))];
  };
  /**
   * Progress must increase, even between two frames. A heartbeat adds only a fraction, so the numbers of the frames
   * stay the same.
   */
  const beat = (token: RpcId) => (): Frame => {
    beats++;
    return { data: JSON.stringify(progressMessage(token, sent + beats / (beats + 1), "At work")) };
  };

  const answered = (result: object) => [
    frame(rpcResult(id, namesType ? { resultType: "complete", ...result } : result)),
  ];
  const failed = (run: RunRecord, error: { readonly code: string; readonly message: string }) =>
    answered(failedResult(outcomeOf(run, { status: "error", text: partial || text, open: [], error })));
  /** Returns an empty frame, whose id lets the client reconnect before the next frame. */
  const opened = (run: RunRecord): Frame[] => {
    if (!cursorOf || cursor !== undefined) return [];
    cursor = cursorOf(run);
    sent++;
    return [{ id: `${cursor}.${sent}`, data: "" }];
  };

  const ask = ({ thread_id }: RunRecord, [first]: readonly Interrupt[]): Frame[] => {
    if (!first) return [];
    last = { thread_id, question: first };
    return [frame(askingOf(thread_id, first, shows))];
  };
  /** The client's user has finished at the URL that the client opened. The run continues, and no one has denied it. */
  const finished = (): Frame[] => {
    const message = last && finishedAt(last.thread_id, last.question, shows);
    last = undefined;
    return message ? [frame(message)] : [];
  };

  const ended = ({ as, status, reason, message, questions }: End, run: RunRecord): Frame[] => {
    if (as === "failed" || as === "limit") return failed(run, { code: reason, message });
    if (as === "cancelled") {
      const error = { code: "cancelled", message };
      return answered(failedResult(outcomeOf(run, { status, text: partial || text, open: [], error })));
    }
    // The call continues when a deferred result arrives.
    if (as === "waits") return [];
    if (as === "asks" && asking === "within" && canAsk(questions, shows)) return ask(run, questions);
    if (as === "asks" && asking === "as_result" && canAsk(questions, shows))
      return [frame(rpcResult(id, inputRequired(run, questions)))];
    return answered(toolResult(outcomeOf(run, { status, text, open: questions })));
  };

  const fold = readTurn<Frame, RunRecord>({
    run(run) {
      agent = run.agent;
      return opened(run);
    },
    answered({ id, decision }) {
      if (last?.question.id === id && decision !== "approve") last = undefined;
      return [];
    },
    step() {
      partial = "";
      return [...finished(), ...progressed(`${agent} thinks`)];
    },
    delta(kind, delta) {
      if (kind === "text") partial += delta;
      return [];
    },
    toolStart: (tool) => progressed(`${agent} calls ${tool}`),
    subagent: (event, path) =>
      event.event === "on_subagent_start" && path.length === 0 ? progressed(`${event.data.name} begins`) : [],
    assistant({ content }) {
      text = content || text;
      return [];
    },
    end: ended,
  });

  return {
    fold,
    beat: progressToken === undefined ? undefined : beat(progressToken),
    end: asking === "within" ? () => trackAskingTurn(shows) : () => trackTurn(),
  };
}

const progressMessage = (progressToken: RpcId, progress: number, message: string) => ({
  jsonrpc: "2.0",
  method: "notifications/progress",
  params: { progressToken, progress, message },
});

const canAsk = (questions: readonly Interrupt[], shows: Shows) =>
  questions.every((each) => canShow(each, shows));

/** Works like `trackTurn`, but a turn continues if the client can show its questions. */
const trackAskingTurn = (shows: Shows) =>
  trackTurn(({ as, questions }) => as === "waits" || (as === "asks" && canAsk(questions, shows)));

/** The client asks its user and repeats the call with the answers. */
const inputRequired = ({ thread_id }: RunRecord, questions: readonly Interrupt[]) => ({
  resultType: "input_required",
  inputRequests: Object.fromEntries(
    questions.map((each) => [each.id, { method: "elicitation/create", params: formOf(each) }]),
  ),
  requestState: thread_id,
});

export function outcomeOf(
  { id: run_id, thread_id }: RunRecord,
  {
    status,
    text,
    open,
    error,
  }: Pick<CallOutcome, "status" | "text" | "error"> & { readonly open: readonly Interrupt[] },
): CallOutcome {
  return {
    thread_id,
    run_id,
    status,
    text,
    ...(open.length > 0 ? { interrupts: open.map(shownInterrupt) } : {}),
    ...omitUndefined({ error }),
  };
}

/** Returns the result of a tool in both shapes, because older clients read the text. */
export const toolResult = (structuredContent: object) => ({
  content: [{ type: "text", text: JSON.stringify(structuredContent) }],
  structuredContent,
});

/** Returns the result of a run that failed or was cancelled, with the agent's text, because its thread can continue. */
const failedResult = (outcome: CallOutcome) => ({ ...toolResult(outcome), isError: true });

const MAX_ERROR = 4000;

/** Returns an error for the client's model. */
export const toolError = (message: string) => ({
  content: [{ type: "text", text: firstChars(message, MAX_ERROR) }],
  isError: true,
});
