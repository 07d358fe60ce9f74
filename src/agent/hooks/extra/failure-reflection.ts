// Asks a model to reflect after several steps in which every call failed. Only the model sees the request. After each further
// failure, the request is repeated once.

import type { Hook } from "../../core/hook.ts";
import { type Message, toolMessages } from "../../core/message.ts";
import { reminders } from "../reminders.ts";

export function create({ after }: { readonly after: number }): Hook {
  const notes = reminders();
  let told = 0;
  return {
    name: "failure_reflection",
    // The reminder must not be added earlier, because a hook that removes old turns would mistake it for the
    // start of a turn.
    async *wrapModelCall(request, next, run, deltas) {
      const failures = failedSteps(run.messages);
      if (failures >= after && failures > told) notes.add(failureNote(failures), run);
      told = failures;
      return yield* next({ ...request, messages: notes.among(request.messages) }, deltas);
    },
  };
}

/**
 * Counts the most recent consecutive steps that failed since the user's last message. A step fails when all
 * its calls fail.
 */
function failedSteps(messages: readonly Message[]): number {
  let count = 0;
  let end = messages.length;
  for (;;) {
    const at = messages.slice(0, end).findLastIndex(({ role }) => role === "assistant" || role === "user");
    const results = toolMessages(messages.slice(at + 1, end));
    const isFailure = results.length > 0 && results.every(({ error }) => error !== undefined);
    if (messages[at]?.role !== "assistant" || !isFailure) return count;
    count++;
    end = at;
  }
}

function failureNote(failures: number): string {
  const steps = failures === 1 ? "Your last step has" : `Your last ${failures} steps have`;
  return `${steps} failed. Before you do anything else, say in a few sentences what went wrong each time, what the cause is (a wrong path, a wrong approach, something missing?), and what you will do differently.`;
}
