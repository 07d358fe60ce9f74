// Asks a model to reflect once every call of several steps has failed. Only the model sees it, once per further failure.

import type { Hook } from "../../core/hook.ts";
import { type Message, toolMessages } from "../../core/message.ts";
import { reminders } from "../reminders.ts";

export function create({ after }: { readonly after: number }): Hook {
  const notes = reminders();
  let told = 0;
  return {
    name: "failure_reflection",
    // Not earlier: a hook that leaves old turns out would take the reminder for the beginning of one.
    async *wrapModelCall(request, next, run, deltas) {
      const failures = failedSteps(run.messages);
      if (failures >= after && failures > told) notes.add(failureNote(failures), run);
      told = failures;
      return yield* next({ ...request, messages: notes.among(request.messages) }, deltas);
    },
  };
}

/** How many of the newest steps in a row failed, since the user spoke. A step fails when all its calls do. */
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
