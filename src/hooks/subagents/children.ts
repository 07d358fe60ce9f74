// The children of a thread, as its state knows them: each is written down before it begins, so that a call that is
// repeated after a crash finds what it has begun.

import { z } from "zod";
import type { ToolCall } from "../../core/message.ts";
import { patchState } from "../../core/run.ts";
import type { Stream } from "../../core/stream.ts";
import type { Run } from "../../core/tool.ts";

/** The slot of the thread's state that holds them, by the ids of their threads. */
const STATE_KEY = "subagents";
/** Past it the oldest that have ended are forgotten. */
const MAX_CHILDREN = 200;

const Slot = z.record(z.string(), z.unknown());
const Kept = z.object({
  /** Counts the children of the thread. */
  number: z.int(),
  /** The message that made the call, the call, and which of its tasks: what a repeated call finds its children by. */
  message_id: z.string(),
  call_id: z.string(),
  index: z.int(),
  agent: z.string(),
  name: z.string(),
  task: z.string().describe("Its beginning."),
  /** On the task board. */
  task_id: z.string().optional(),
  background: z.boolean(),
  status: z.enum(["running", "interrupted", "completed", "failed", "cancelled"]),
  /** The newest of its runs that was followed; absent until it has begun. */
  run_id: z.string().optional(),
  summary: z.string().optional().describe("Its beginning."),
  /** Whether the agent was told how a child in the background has ended. */
  told: z.literal(true).optional(),
});

export interface Child extends z.infer<typeof Kept> {
  readonly thread_id: string;
}

export const hasEnded = ({ status }: Child) => status !== "running" && status !== "interrupted";

/** In the order in which they were begun. */
export function childrenOf({ state }: Run): Child[] {
  const slot = Slot.safeParse(state.get(STATE_KEY)).data ?? {};
  return Object.entries(slot)
    .flatMap(([thread_id, value]) => {
      const kept = Kept.safeParse(value).data;
      return kept ? [{ thread_id, ...kept }] : [];
    })
    .sort((a, b) => a.number - b.number);
}

/** Writes children down: new ones, or what has become of them. What is yielded is durable before it goes on. */
export async function* keepChildren(run: Run, children: readonly Child[]): Stream<void> {
  if (children.length === 0) return;
  const known = childrenOf(run);
  const news = children.filter(({ thread_id }) => !known.some((each) => each.thread_id === thread_id));
  const surplus = Math.max(0, known.length + news.length - MAX_CHILDREN);
  const old = known.filter(hasEnded).slice(0, surplus);
  yield* patchState(
    run,
    STATE_KEY,
    Object.fromEntries([
      ...old.map(({ thread_id }) => [thread_id, null]),
      ...children.map(({ thread_id, ...kept }) => [thread_id, kept]),
    ]),
  );
}

/** The message that made the call: ids of calls alone may come again. */
export function callerOf({ id }: ToolCall, run: Run): string {
  const makes = run.messages.findLast(
    (message) => message.role === "assistant" && message.tool_calls?.some((call) => call.id === id),
  );
  return makes?.id ?? "";
}
