// A thread's current state, and its states at earlier checkpoints. States are written as text in parts, because each
// state of a long thread takes several megabytes.

import type { Message } from "../../../agent/core/message.ts";
import type { Thread } from "../../../agent/core/records.ts";
import type { Interrupt } from "../../../protocol/interrupt.ts";
import { interruptsOf, stateShape } from "../history.ts";
import { assistantIdOf } from "./assistants.ts";
import { type Checkpoint, checkpointBefore, checkpointsOf, stepOf } from "./checkpoints.ts";

/** A thread with all the data for its states. */
export interface WholeThread {
  readonly thread: Thread;
  readonly messages: readonly Message[];
  readonly state: Readonly<Record<string, unknown>>;
  readonly open: readonly Interrupt[];
}

/** Yields the parts of a thread's `values`, for a response that is sent in parts. */
export function* valuesText(
  texts: readonly string[],
  rest: Readonly<Record<string, unknown>>,
): Generator<string, void, void> {
  yield '{"messages":[';
  for (const [index, text] of texts.entries()) yield index === 0 ? text : `,${text}`;
  const more = JSON.stringify(rest).slice(1);
  yield more === "}" ? "]}" : `],${more}`;
}

/** The fields of a state that a client requests, such as `values.messages`, or undefined for all fields. */
export type Selection = readonly string[] | undefined;

const wants = (select: Selection, field: string) =>
  !select || select.some((each) => each === field || each.startsWith(`${field}.`));

/** Yields a state's text in parts. */
export function* stateText(
  whole: WholeThread,
  texts: readonly string[],
  { at, select }: { readonly at: Checkpoint; readonly select?: Selection },
): Generator<string, void, void> {
  const { values, ...rest } = stateAt(whole, at);
  const head = Object.entries(rest).filter(([field]) => wants(select, field));
  yield "{";
  if (wants(select, "values")) {
    const keys = select?.includes("values") ? undefined : select;
    const shown = Object.entries(values).filter(([key]) => wants(keys, `values.${key}`));
    yield '"values":';
    if (wants(keys, "values.messages"))
      yield* valuesText(texts.slice(0, at.count), Object.fromEntries(shown));
    else yield JSON.stringify(Object.fromEntries(shown));
    if (head.length > 0) yield ",";
  }
  yield `${JSON.stringify(Object.fromEntries(head)).slice(1, -1)}}`;
}

/** Returns a state without its messages. Earlier todos and files are unknown. */
function stateAt({ thread, messages, state, open }: WholeThread, at: Checkpoint) {
  const isHead = at.count === messages.length;
  const before = checkpointBefore(messages, at.count);
  const interrupts = isHead ? interruptsOf(open) : [];
  const step = stepOf(messages, at);
  return {
    values: isHead ? stateShape(state) : { todos: [], files: {} },
    next: nextAt(messages, at, isHead ? thread.status : undefined),
    tasks: interrupts.length > 0 ? [taskOf(interrupts)] : [],
    metadata: { ...ofAgent(thread), source: sourceOf(messages, at), step, thread_id: thread.id },
    created_at: messages[at.count - 1]?.created_at ?? thread.created_at,
    checkpoint: checkpointShape(thread, at),
    parent_checkpoint: before ? checkpointShape(thread, before) : null,
    interrupts,
  };
}

export const checkpointShape = ({ id }: Pick<Thread, "id">, checkpoint: Checkpoint) => ({
  thread_id: id,
  checkpoint_ns: "",
  checkpoint_id: checkpoint.id,
  checkpoint_map: null,
});

function nextAt(
  messages: readonly Message[],
  { count }: Checkpoint,
  status: Thread["status"] | undefined,
): string[] {
  if (status === "busy") return ["agent"];
  if (status === "interrupted") return ["tools"];
  if (status !== undefined) return [];
  return messages[count - 1]?.role === "user" ? ["agent"] : [];
}

const sourceOf = (messages: readonly Message[], { count }: Checkpoint) =>
  messages[count - 1]?.role === "user" || count === 0 ? "input" : "loop";

const taskOf = (interrupts: readonly { readonly id: string }[]) => ({
  id: interrupts[0]?.id,
  name: "tools",
  path: ["__pregel_pull", "tools"],
  error: null,
  interrupts,
  checkpoint: null,
  state: null,
  result: null,
});

/** Returns the two names of a thread's agent. */
export const ofAgent = ({ agent }: Thread): Record<string, string> =>
  agent === undefined ? {} : { graph_id: agent, assistant_id: assistantIdOf(agent) };

/** The maximum number of bytes in all states of a response. */
const HISTORY_BYTES = 64 * 1024 * 1024;

/**
 * Returns the checkpoints of a history, newest first. If `before` is given, returns only the checkpoints before it.
 * Returns at most `limit`, and only as many as fit into a response.
 */
export function historyOf(
  { messages }: WholeThread,
  texts: readonly string[],
  { limit, before }: { readonly limit: number; readonly before?: string | undefined },
): Checkpoint[] {
  const all = checkpointsOf(messages).toReversed();
  const at = before === undefined ? 0 : all.findIndex(({ id }) => id === before) + 1;
  let bytes = 0;
  const sizes = texts.map((text) => {
    bytes += text.length;
    return bytes;
  });
  let budget = HISTORY_BYTES;
  return all.slice(at, at + limit).filter(({ count }, index) => {
    budget -= sizes[count - 1] ?? 0;
    return index === 0 || budget > 0;
  });
}
