// The commands: none ran twice, none is missing from the thread, and the model read the truth.

import type { Journal } from "./journal.ts";
import type { ThreadOnRecord } from "./records.ts";

/** Errors that promise that the call had no effect. */
const WAS_NOT_RUN = /^(Not run|Cancelled before it was run|Interrupted: a new message came before)/;

export function judgeExecutions(
  threads: readonly ThreadOnRecord[],
  executions: readonly string[],
  journal: Journal,
): void {
  const times = new Map<string, number>();
  for (const id of executions) times.set(id, (times.get(id) ?? 0) + 1);
  journal.count("commands run", executions.length);
  const messages = threads.flatMap((thread) => thread.messages);
  const called = messages.flatMap((each) => (each.role === "assistant" ? (each.tool_calls ?? []) : []));
  const known = new Set(called.map(({ id }) => id));
  for (const [id, count] of times) {
    if (count > 1) journal.fault(`the command of ${id} was run ${count} times`);
    if (!known.has(id)) journal.fault(`the command of ${id} was run, and no thread knows of that call`);
  }
  for (const message of messages) {
    if (message.role !== "tool" || message.name !== "execute") continue;
    const { tool_call_id: id, error } = message;
    const count = times.get(id) ?? 0;
    if (error === undefined && count === 0) journal.fault(`${id} has a result, and its command was not run`);
    if (error?.includes("utcome unknown")) journal.count("outcomes unknown");
    if (error !== undefined && WAS_NOT_RUN.test(error) && count > 0)
      journal.fault(`${id} was run, and its result says "${error}"`);
  }
}
