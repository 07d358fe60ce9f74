// The children of a thread, as its state knows them: each is written down before it begins, so that a call that is
// repeated after a crash finds what it has begun.

import { z } from "zod";
import { AppError } from "../../core/errors.ts";
import { newThreadId } from "../../core/ids.ts";
import { type Message, type ToolCall, userMessage } from "../../core/message.ts";
import type { Lineage, RunRecord } from "../../core/records.ts";
import { patchState, rootOf } from "../../core/run.ts";
import type { Stream } from "../../core/stream.ts";
import type { Run } from "../../core/tool.ts";
import { firstChars, xmlTag } from "../../lib/text.ts";
import { priorReflections } from "../reflections.ts";
import { claimTask, settleTask } from "../tasks.ts";
import { backendOf, memberCalled, type Team } from "./subagent-config.ts";

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

export function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  return `${firstChars(text, length)}\n[${text.length - length} more characters are left out.]`;
}

// Children of a call: found again when the call is repeated, else named and written down before they begin.
const MAX_TASK_CHARS = 500;

/** A task with the child that has it, or with why nobody gets it. */
export type Enlisted =
  | { readonly task: Task; readonly child: Child }
  | { readonly task: Task; readonly fault: string };

interface Enlisting {
  readonly call: ToolCall;
  readonly tasks: readonly Task[];
  readonly background: boolean;
}

export async function* enlist(
  team: Team,
  { call, tasks, background }: Enlisting,
  run: Run,
): Stream<Enlisted[]> {
  const message_id = callerOf(call, run);
  const all = childrenOf(run);
  const own = all.filter((child) => child.message_id === message_id && child.call_id === call.id);
  let number = all.at(-1)?.number ?? 0;
  const news: Child[] = [];
  const enlisted = tasks.map((task, index): Enlisted => {
    const known = own.find((child) => child.index === index);
    if (known) return { task, child: known };
    const found = memberCalled(task.agent, team);
    if ("fault" in found) return { task, fault: found.fault };
    const agent = found.member.name;
    const child: Child = {
      thread_id: newThreadId(),
      ...{ number: ++number, message_id, call_id: call.id, index, agent, background, status: "running" },
      name: instanceName({ agent, task: task.task, number, parent: run.lineage?.name }),
      task: cut(task.task, MAX_TASK_CHARS),
      ...(task.task_id === undefined ? {} : { task_id: task.task_id }),
    };
    news.push(child);
    return { task, child };
  });
  yield* keepChildren(run, news);
  return enlisted;
}

/** How a child begins: with its task on the board as its own. */
export function beginner(team: Team, { task, child }: { task: Task; child: Child }, run: Run) {
  return async (lineage: Lineage): Promise<RunRecord> => {
    const { task_id, agent, name, thread_id } = child;
    const { items, subagents } = team;
    const place = { owner: run.owner, root: rootOf(run) };
    const messages = await briefing(team, { ...task, agent }, run);
    const begin = () => subagents.begin(run.owner, { thread_id, agent, messages, lineage });
    if (task_id === undefined) return begin();
    if (!items) throw new AppError("invalid_request", "There is no task board.");
    await claimTask(items, place, task_id, name);
    try {
      return await begin();
    } catch (error) {
      await settleTask(items, place, { id: task_id, status: "failed", by: name });
      throw error;
    }
  };
}

// What children are called: `coder-refactor-1` is the agent, what it is about, and a number that nobody else of the family
// has. The children of that one are `1.1`, `1.2` and so on.

const STOP_WORDS = new Set(
  "the and for you your with this that from into please can could would should need have has are was will all its our any not but use".split(
    " ",
  ),
);
const MAX_CHARS = 12;

/** The first word of a task that says something, at most twelve letters of it. */
function slugOf(task: string): string {
  const words = task.toLowerCase().match(/[a-z0-9]{3,}/g) ?? [];
  return words.find((word) => !STOP_WORDS.has(word))?.slice(0, MAX_CHARS) ?? "task";
}

interface Named {
  readonly agent: string;
  readonly task: string;
  /** Counts the children of its parent. */
  readonly number: number;
  /** What its parent is called, if that works for another one. */
  readonly parent: string | undefined;
}

export function instanceName({ agent, task, number, parent }: Named): string {
  const counter = parent === undefined ? number : `${counterIn(parent)}.${number}`;
  return `${agent}-${slugOf(task)}-${counter}`;
}

const counterIn = (name: string) => name.slice(name.lastIndexOf("-") + 1);

// What a child knows of the family.

export function lineageOf(team: Team, child: Child, call: ToolCall, run: Run): Lineage {
  const { agent, name, background } = child;
  const backend_of = backendOf(agent, team, run.lineage?.backend_of);
  return {
    parent: { thread_id: run.threadId, run_id: run.id, call_id: call.id, background },
    root: rootOf(run),
    depth: (run.lineage?.depth ?? 0) + 1,
    name,
    ...(backend_of === undefined ? {} : { backend_of }),
  };
}

// What a child is told when it begins.
const MAX_CONTEXT_CHARS = 16_000;

export interface Task {
  readonly agent: string;
  readonly task: string;
  readonly context: string;
  readonly task_id?: string | undefined;
}

/** Who asks and why, what went wrong with similar tasks, and the task itself as the last. */
export async function briefing(team: Team, { agent, task, context }: Task, run: Run): Promise<Message[]> {
  const asker = run.lineage?.name ?? team.agent.name;
  const why = `\`${asker}\` gives you a task.\n\n${cut(context, MAX_CONTEXT_CHARS)}`;
  const place = { owner: run.owner, agent };
  const prior =
    team.items && team.agent.hooks.reflections ? await priorReflections(team.items, place, task) : undefined;
  return [xmlTag("delegation_context", why), ...(prior ? [prior] : []), task].map((text) =>
    userMessage(text),
  );
}
