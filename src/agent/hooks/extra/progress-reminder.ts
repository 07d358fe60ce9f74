// Reminds the model of its plan when the todos have not changed for several steps, and of the limit when few model calls are
// left.

import { z } from "zod";
import type { Hook, HookServices } from "../../core/hook.ts";
import { assistantMessages, type Message } from "../../core/message.ts";
import type { Run } from "../../core/tool.ts";
import { reminders } from "../reminders.ts";

interface Options {
  readonly every: number;
  readonly last: number;
}

export function create({ every, last }: Options, { agent }: Pick<HookServices, "agent">): Hook {
  const notes = reminders();
  let calls = 0;
  return {
    name: "progress_reminder",
    modifyRequest(request, run) {
      calls++;
      const steps = stepsWithoutProgress(run.messages);
      if (steps > 0 && steps % every === 0) {
        const text = progressNote(steps, run);
        if (text) notes.add(text, run);
      }
      const left = agent.max_iterations - calls + 1;
      if (agent.max_iterations > 0 && last > 0 && (left === last || left === 1))
        notes.add(endNote(left), run);
      return { ...request, messages: notes.among(request.messages) };
    },
  };
}

/** Returns the number of model calls since the user's last message or since the todos were last written. */
function stepsWithoutProgress(messages: readonly Message[]): number {
  const since = messages.findLastIndex(
    (message) =>
      message.role === "user" ||
      (message.role === "tool" && message.name === "write_todos" && message.error === undefined),
  );
  return assistantMessages(messages.slice(since + 1)).length;
}

/**
 * Returns a note that mentions only steps that the agent has tools for, or undefined if it has none of these
 * tools.
 */
function progressNote(steps: number, run: Run): string | undefined {
  const open = openTodos(run);
  const asks = [
    ...(run.tools.has("write_todos") ? [open.length > 0 ? UPDATE_TODOS : MAKE_TODOS] : []),
    ...(run.tools.has("write_note") ? [WRITE_NOTE] : []),
  ];
  if (asks.length === 0) return undefined;
  const list = open.slice(0, MAX_SHOWN).map((title) => `- ${title}`);
  const plan = open.length > 0 ? ["Still open in your todos:", ...list] : [];
  return [`You have taken ${steps} steps since you last updated your plan.`, ...plan, ...asks].join("\n");
}

const MAX_SHOWN = 10;
const UPDATE_TODOS = "Update them with write_todos, and continue with the open ones.";
const MAKE_TODOS = "If much work is left, plan it with write_todos. Otherwise, finish.";
const WRITE_NOTE = "Use write_note to record findings that you will need later.";

const Todos = z.array(z.object({ title: z.string(), status: z.string() }));

function openTodos({ state }: Run): string[] {
  const todos = Todos.safeParse(state.get("todos")).data ?? [];
  return todos.filter(({ status }) => status !== "done").map(({ title }) => title);
}

function endNote(left: number): string {
  if (left === 1)
    return "This is your last answer in this run, and you will not see any more tool results. Answer the user now, and say what is left to do.";
  return `You can give ${left} more answers in this run, including this one. Finish what matters most.`;
}
