// Converts a turn to updates of an A2A task.

import type { RunRecord } from "../../agent/core/records.ts";
import { readTurn } from "../../protocol/turn-reader.ts";
import type { Frame } from "../../server/http/sse.ts";
import type { Fold } from "../fold.ts";
import { type RpcId, rpcResult } from "../json-rpc.ts";
import {
  agentMessage,
  artifactOf,
  failure,
  question,
  statusOf,
  type TaskMessage,
  type TaskRef,
  type TaskState,
} from "./history.ts";

export interface ProjectOptions {
  /** The id of the client's request. */
  readonly id: RpcId;
  readonly ref: TaskRef;
  /** The first result of the stream: the task before its newest run. By default, the task as it was submitted. */
  readonly begin?: object;
  /** Converts a result to the shape that the client expects. Default: the 1.0 shape. */
  readonly resultOf?: (result: object) => object;
}

/** Returns the updates of a stream, as responses to the request. */
export function project({ id, ref, begin, resultOf = (result) => result }: ProjectOptions): Fold {
  /** The message in progress. */
  let open: { readonly id: string; hasText: boolean } | undefined;
  let at = "";

  const frame = (result: object): Frame => ({ data: JSON.stringify(rpcResult(id, resultOf(result))) });
  const status = (state: TaskState, message?: TaskMessage) =>
    frame({ statusUpdate: { ...ref, status: statusOf(state, at, message) } });
  const artifact = (text: string, { append, lastChunk }: { append: boolean; lastChunk: boolean }) =>
    open
      ? [frame({ artifactUpdate: { ...ref, artifact: artifactOf(open.id, text), append, lastChunk } })]
      : [];
  const say = (text: string) => {
    const append = open?.hasText === true;
    if (open) open.hasText = true;
    return artifact(text, { append, lastChunk: false });
  };
  /** Ends the message and keeps or retracts its text. */
  const close = ({ keeps }: { keeps: boolean }) => {
    const frames = open?.hasText ? artifact("", { append: keeps, lastChunk: true }) : [];
    open = undefined;
    return frames;
  };

  const read = readTurn<Frame, RunRecord>({
    start: ({ resumes }) => {
      const state = resumes === undefined ? "SUBMITTED" : "WORKING";
      const task = { id: ref.taskId, contextId: ref.contextId, status: statusOf(state, at) };
      return [frame({ task: begin ?? task })];
    },
    step({ id }) {
      const frames = close({ keeps: false });
      open = { id, hasText: false };
      return frames;
    },
    delta: (kind, text) => (kind === "text" ? say(text) : []),
    stepEnd: ({ failed }) => (failed ? close({ keeps: false }) : []),
    assistant({ id, content, incomplete }, isStreamed) {
      if (isStreamed || incomplete === undefined) return close({ keeps: true });
      // The answer was cut off: its text was retracted from the stream, but the thread keeps it.
      open = { id, hasText: false };
      return [...say(content), ...close({ keeps: true })];
    },
    toolStart(tool, { call_id, args }) {
      const parts = [{ text: `Calls ${tool}.` }, { data: { tool, call_id, args } }];
      return [status("WORKING", agentMessage(ref, call_id, parts))];
    },
    end({ as, message, questions }) {
      // The task continues when the result of a deferred call arrives.
      if (as === "waits") return [];
      const frames = close({ keeps: false });
      if (as === "asks") return [...frames, status("INPUT_REQUIRED", question(ref, questions))];
      const why = as === "limit" || as === "failed" ? failure(ref, message) : undefined;
      return [...frames, status(STATES[as], why)];
    },
  });
  return (event, run) => {
    at = ("ts" in event ? event.ts : undefined) ?? run.created_at;
    return read(event, run);
  };
}

const STATES = {
  finished: "COMPLETED",
  cancelled: "CANCELED",
  limit: "FAILED",
  failed: "FAILED",
} as const;
