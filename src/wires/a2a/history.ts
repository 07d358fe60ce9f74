// A thread as A2A shows it: messages, artifacts and the status of tasks.

import { type Content, type Message, textOf } from "../../agent/core/message.ts";
import { type Interrupt, promptText } from "../../protocol/interrupt.ts";
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

/** The task to which a message, an artifact or an update belongs. */
export interface TaskRef {
  readonly taskId: string;
  readonly contextId: string;
}

export const statusOf = (state: TaskState, timestamp: string, message?: TaskMessage) => ({
  state: `TASK_STATE_${state}`,
  timestamp,
  ...(message ? { message } : {}),
});

export const agentMessage = (ref: TaskRef, messageId: string, parts: readonly Part[]): TaskMessage => ({
  messageId,
  ...ref,
  role: "ROLE_AGENT",
  parts,
});

export const failure = (ref: TaskRef, text: string) => agentMessage(ref, `${ref.taskId}.end`, [{ text }]);

/** Returns the open questions of a task, as text for a person and as data for a program. */
export const question = (ref: TaskRef, open: readonly Interrupt[]) =>
  agentMessage(ref, `${ref.taskId}.${open[0]?.id ?? ""}`, [
    { text: open.map(wordsOf).join("\n\n") },
    { data: { interrupts: open.map(shownInterrupt) } },
  ]);

const wordsOf = ({ kind, options = [], ...asked }: Interrupt) =>
  [promptText(asked), ...(kind === "question" ? options : []).map((option) => `- ${option}`)].join("\n");

export const artifactOf = (artifactId: string, text: string): Artifact => ({ artifactId, parts: [{ text }] });

/** Returns the messages and the artifacts of a task's history. */
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
