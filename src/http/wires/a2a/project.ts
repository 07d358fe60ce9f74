// A turn as an A2A task: the updates of its stream, and what it has said so far.

import { type Content, type Message, textOf } from "../../../core/message.ts";
import type { RunRecord } from "../../../core/records.ts";
import type { Interrupt } from "../../../protocol/interrupt.ts";
import { readTurn } from "../../../protocol/turn-reader.ts";
import type { Frame } from "../../sse.ts";
import type { Fold } from "../fold.ts";
import { type RpcId, rpcResult } from "../json-rpc.ts";
import { shownInterrupt } from "../shown.ts";

export type TaskState = "SUBMITTED" | "WORKING" | "COMPLETED" | "INPUT_REQUIRED" | "CANCELED" | "FAILED";

type Part = { readonly text: string } | { readonly data: object };

export interface TaskMessage {
  readonly messageId: string;
  readonly contextId: string;
  readonly taskId: string;
  readonly role: "ROLE_USER" | "ROLE_AGENT";
  readonly parts: readonly Part[];
}

export interface Artifact {
  readonly artifactId: string;
  readonly parts: readonly Part[];
}

/** Which task something belongs to. */
export interface TaskRef {
  readonly taskId: string;
  readonly contextId: string;
}

export interface ProjectOptions {
  /** Of the client's request. */
  readonly id: RpcId;
  readonly ref: TaskRef;
  /** What the stream begins with: the task before its newest run. Default: the task as it is submitted. */
  readonly begin?: object;
  /** A result in the shape that the client knows. Default: that of 1.0. */
  readonly resultOf?: (result: object) => object;
}

/** The updates of a stream, as answers to the request. */
export function project({ id, ref, begin, resultOf = (result) => result }: ProjectOptions): Fold {
  /** The message that is being written. */
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
  /** Ends the message: what it said is kept, or taken back. */
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
      // An answer that was cut off: it was taken back, and the thread keeps it.
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
      return [...frames, status(STATES[as], message ? failure(ref, message) : undefined)];
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

export const statusOf = (state: TaskState, timestamp: string, message?: TaskMessage) => ({
  state: `TASK_STATE_${state}`,
  timestamp,
  ...(message ? { message } : {}),
});

const agentMessage = (ref: TaskRef, messageId: string, parts: readonly Part[]): TaskMessage => ({
  messageId,
  ...ref,
  role: "ROLE_AGENT",
  parts,
});

export const failure = (ref: TaskRef, text: string) => agentMessage(ref, `${ref.taskId}.end`, [{ text }]);

/** What the task asks: in words for a person, as data for a program. */
export const question = (ref: TaskRef, open: readonly Interrupt[]) =>
  agentMessage(ref, `${ref.taskId}.${open[0]?.id ?? ""}`, [
    { text: open.map(wordsOf).join("\n\n") },
    { data: { interrupts: open.map(shownInterrupt) } },
  ]);

const wordsOf = ({ kind, prompt, options = [] }: Interrupt) =>
  [prompt, ...(kind === "question" ? options : []).map((option) => `- ${option}`)].join("\n");

const artifactOf = (artifactId: string, text: string): Artifact => ({ artifactId, parts: [{ text }] });

/** What a task's messages are in its history and among its artifacts. */
export function told(ref: TaskRef, messages: readonly Message[]) {
  const history: TaskMessage[] = [];
  const artifacts: Artifact[] = [];
  for (const message of messages) {
    if (message.role === "user")
      history.push({ messageId: message.id, ...ref, role: "ROLE_USER", parts: partsOf(message.content) });
    if (message.role !== "assistant" || !message.content) continue;
    history.push(agentMessage(ref, message.id, [{ text: message.content }]));
    artifacts.push(artifactOf(message.id, message.content));
  }
  return { history, artifacts };
}

const partsOf = (content: Content): Part[] => [
  { text: typeof content === "string" ? content : textOf(content) },
];
