// The children of a thread. Each child is saved in the thread's state before it starts, so a repeated call after a crash
// finds the children that it started.

import { z } from "zod";
import { firstChars, xmlTag } from "../../../lib/text.ts";
import { AppError, hasCode } from "../../core/errors.ts";
import { bounded, FLOW_STATE, Reading, readByChildren, readingsOf, storedReadings } from "../../core/flow.ts";
import { FLOW_RULES } from "../../core/flow-rules.ts";
import type { Subagents } from "../../core/hook.ts";
import { type Message, type ToolCall, userMessage } from "../../core/message.ts";
import { newThreadId } from "../../core/new-ids.ts";
import type { Lineage, RunRecord } from "../../core/records.ts";
import { patchState, rootOf, setState } from "../../core/run.ts";
import type { Stream } from "../../core/stream.ts";
import type { Run } from "../../core/tool.ts";
import { backendOf, memberCalled, type SubagentConfig } from "./subagent-config.ts";

/** The state key of the thread's children, which are stored by thread id. */
const STATE_KEY = "subagents";
/** The maximum number of children. When there are more, the oldest finished children are removed. */
const MAX_CHILDREN = 200;
const MAX_TASK_CHARS = 500;
const MAX_CONTEXT_CHARS = 16_000;

const Slot = z.record(z.string(), z.unknown());
const StoredChild = z.object({
  /** The number of this child among the thread's children. */
  number: z.int(),
  /** Identifies the task together with `call_id` and `index`, because call ids may repeat. */
  message_id: z.string(),
  call_id: z.string(),
  index: z.int(),
  agent: z.string(),
  name: z.string(),
  task: z.string().describe("The beginning of the task."),
  /** The id of the task on the task board. */
  task_id: z.string().optional(),
  background: z.boolean(),
  status: z.enum(["running", "interrupted", "completed", "failed", "cancelled"]),
  /** The most recent run that the parent followed. Undefined until the child has started. */
  run_id: z.string().optional(),
  summary: z.string().optional().describe("The beginning of the summary."),
  /** Set once the agent has read the outcome of a background child. */
  told: z.literal(true).optional(),
  /** The child's readings when it ended. */
  read: z.array(Reading).optional(),
});

export interface Child extends z.infer<typeof StoredChild> {
  readonly thread_id: string;
}

/** The messages and state of a child's thread. */
export interface ChildThread {
  readonly messages: readonly Message[];
  readonly state: Readonly<Record<string, unknown>>;
}

export const hasEnded = ({ status }: Child) => status !== "running" && status !== "interrupted";

/** Returns the children, sorted from oldest to newest. */
export function childrenOf({ state }: Run): Child[] {
  const slot = Slot.safeParse(state.get(STATE_KEY)).data ?? {};
  return Object.entries(slot)
    .flatMap(([thread_id, value]) => {
      const stored = storedIn(value);
      return stored ? [{ thread_id, ...stored }] : [];
    })
    .sort((a, b) => a.number - b.number);
}

/**
 * Caches validated children. A run saves its children one by one, and each time nearly all of them are
 * unchanged.
 */
const checked = new WeakMap<object, z.infer<typeof StoredChild>>();

function storedIn(value: unknown): z.infer<typeof StoredChild> | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const stored = checked.get(value) ?? StoredChild.safeParse(value).data;
  if (stored) checked.set(value, stored);
  return stored;
}

/** Adds or replaces children. They are durable once the consumer has received the event. */
export async function* saveChildren(run: Run, children: readonly Child[]): Stream<void> {
  if (children.length === 0) return;
  const known = childrenOf(run);
  const added = children.filter(({ thread_id }) => !known.some((each) => each.thread_id === thread_id));
  const surplus = Math.max(0, known.length + added.length - MAX_CHILDREN);
  const forgotten = known.filter(hasEnded).slice(0, surplus);
  // The readings of removed children still count.
  if (forgotten.some(({ read = [] }) => read.length > 0))
    yield* setState(run, FLOW_STATE, bounded([...storedReadings(run.state), ...readByChildren(run.state)]));
  yield* patchState(
    run,
    STATE_KEY,
    Object.fromEntries([
      ...forgotten.map(({ thread_id }) => [thread_id, null]),
      ...children.map(({ thread_id, ...stored }) => [thread_id, stored]),
    ]),
  );
}

export interface SubagentTask {
  readonly agent: string;
  readonly task: string;
  readonly context: string;
  readonly task_id?: string | undefined;
}

/** A task with its child, or with the reason why it has no child. */
export type RegisteredTask =
  | { readonly task: SubagentTask; readonly child: Child }
  | { readonly task: SubagentTask; readonly fault: string };

/** Finds the children that an earlier attempt of this call saved. Names and saves all other children. */
export async function* registerChildren(
  config: SubagentConfig,
  { call, tasks, background }: { call: ToolCall; tasks: readonly SubagentTask[]; background: boolean },
  run: Run,
): Stream<RegisteredTask[]> {
  const caller = run.messages.findLast(
    (message) => message.role === "assistant" && message.tool_calls?.some(({ id }) => id === call.id),
  );
  const message_id = caller?.id ?? "";
  const all = childrenOf(run);
  const own = all.filter((child) => child.message_id === message_id && child.call_id === call.id);
  let number = all.at(-1)?.number ?? 0;
  const added: Child[] = [];
  const registered = tasks.map((task, index): RegisteredTask => {
    const known = own.find((child) => child.index === index);
    if (known) return { task, child: known };
    const found = memberCalled(task.agent, config);
    if ("fault" in found) return { task, fault: found.fault };
    const agent = found.member.name;
    number++;
    const child: Child = {
      thread_id: newThreadId(),
      number,
      message_id,
      call_id: call.id,
      index,
      agent,
      background,
      status: "running",
      name: instanceName(agent, task.task, number, run.lineage?.name),
      task: cut(task.task, MAX_TASK_CHARS),
      task_id: task.task_id,
    };
    added.push(child);
    return { task, child };
  });
  yield* saveChildren(run, added);
  return registered;
}

const STOP_WORDS = new Set(
  "the and for you your with this that from into please can could would should need have has are was will all its our any not but use".split(
    " ",
  ),
);
const MAX_SLUG_CHARS = 12;

/**
 * Builds a name such as `coder-refactor-1` from the agent, the task's first significant word and a number.
 * Children of `…-1` get `1.1`, `1.2`.
 */
function instanceName(agent: string, task: string, number: number, parent: string | undefined): string {
  const words = task.toLowerCase().match(/[a-z0-9]{3,}/g) ?? [];
  const slug = words.find((word) => !STOP_WORDS.has(word))?.slice(0, MAX_SLUG_CHARS) ?? "task";
  const prefix = parent === undefined ? "" : `${parent.slice(parent.lastIndexOf("-") + 1)}.`;
  return `${agent}-${slug}-${prefix}${number}`;
}

/** Starts a child's first run, and claims its task on the board. */
export async function startChild(
  config: SubagentConfig,
  { task, child, call }: { task: SubagentTask; child: Child; call: ToolCall },
  run: Run,
): Promise<RunRecord> {
  const { tasks, subagents } = config;
  const { task_id, agent, name, thread_id } = child;
  const messages = await initialMessages(config, { ...task, agent }, run);
  const lineage = lineageOf(config, child, call, run);
  const start = () => subagents.begin(run.owner, { thread_id, agent, messages, lineage });
  if (task_id === undefined) return start();
  if (!tasks) throw new AppError("invalid_request", "There is no task board.");
  const claimed = { owner: run.owner, root: rootOf(run), id: task_id };
  await tasks.claim(claimed, name);
  try {
    return await start();
  } catch (error) {
    await tasks.settle(claimed, name, "failed");
    throw error;
  }
}

export function lineageOf(config: SubagentConfig, child: Child, call: ToolCall, run: Run): Lineage {
  const { agent, name, background } = child;
  const backend_of = backendOf(agent, config, run.lineage?.backend_of);
  const read = bounded(readingsOf(run, call));
  const flow = run.values.get(FLOW_RULES) ?? [];
  return {
    parent: { thread_id: run.threadId, run_id: run.id, call_id: call.id, background },
    root: rootOf(run),
    depth: (run.lineage?.depth ?? 0) + 1,
    name,
    ...(backend_of === undefined ? {} : { backend_of }),
    ...(read.length > 0 ? { read } : {}),
    ...(flow.length > 0 ? { flow: [...flow] } : {}),
  };
}

/** Returns the readings of a subagent's thread, including those of its own subagents. */
export const readInChild = ({ messages, state }: ChildThread): Reading[] =>
  bounded(readingsOf({ messages, state: new Map(Object.entries(state)) }));

/** Returns a subagent's readings so far. */
export async function readByChild(
  subagents: Subagents,
  { owner }: Run,
  { thread_id }: Child,
): Promise<Reading[]> {
  try {
    return readInChild(await subagents.thread(owner, thread_id));
  } catch (error) {
    // The subagent has not begun.
    if (hasCode(error, "not_found")) return [];
    throw error;
  }
}

/** Returns the caller and the reason, then failures of similar tasks, and finally the task itself. */
async function initialMessages(
  { agent: caller, items }: SubagentConfig,
  { agent, task, context }: SubagentTask,
  run: Run,
): Promise<Message[]> {
  const why = `\`${run.lineage?.name ?? caller.name}\` gives you a task.\n\n${cut(context, MAX_CONTEXT_CHARS)}`;
  const texts = [xmlTag("delegation_context", why), task];
  if (items && caller.hooks.reflections) {
    const { priorReflections } = await import("../extra/reflections.ts");
    const prior = await priorReflections(items, { owner: run.owner, agent }, task);
    if (prior) texts.splice(1, 0, prior);
  }
  return texts.map((text) => userMessage(text));
}

export function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  return `${firstChars(text, length)}\n[${text.length - length} more characters are left out.]`;
}
