// Warns the model when the results of its calls repeat, and ends the run if the same number of further results contains
// nothing new.

import { causeText } from "../../../protocol/end-texts.ts";
import { warning } from "../../../protocol/event.ts";
import { RunLimit } from "../../core/errors.ts";
import type { Hook } from "../../core/hook.ts";
import { type Message, type ToolMessage, textOf, toolMessages } from "../../core/message.ts";
import { reminders } from "../reminders.ts";

/** The number of characters to compare. Results with the same beginning count as equal. */
const COMPARED_CHARS = 200;

interface Options {
  readonly window: number;
  readonly alike: number;
}

export function create({ window, alike }: Options): Hook {
  const notes = reminders();
  let toldAt: number | undefined;
  return {
    name: "stall_detection",
    // This must not happen earlier, because a hook that removes old turns would mistake the reminder for the
    // start of a turn.
    async *wrapModelCall(request, next, run, deltas) {
      const results = resultsSinceUser(run.messages);
      const stalls = results.length >= window && repeated(results.slice(-window)) >= alike * window;
      if (!stalls) toldAt = undefined;
      else if (toldAt === undefined) {
        toldAt = results.length;
        const state = `The last ${window} results contain nothing new.`;
        yield warning("stalled", state);
        notes.add(`${state} ${ADVICE}`, run);
      } else if (results.length >= toldAt + window)
        throw new RunLimit("loop_detected", causeText(`it made no progress in ${window} further calls`), {
          limit: "stall_detection",
        });
      return yield* next({ ...request, messages: notes.among(request.messages) }, deltas);
    },
  };
}

const ADVICE =
  "Step back. What do you want to find out, and why have you not found it yet? Try a different approach, or tell the user what is stopping you.";

function resultsSinceUser(messages: readonly Message[]): ToolMessage[] {
  return toolMessages(messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1));
}

/** Counts the results that repeat an earlier one. */
const repeated = (results: readonly ToolMessage[]) => results.length - new Set(results.map(likeness)).size;

function likeness({ name, content, error }: ToolMessage): string {
  const start = (text: string) => text.slice(0, COMPARED_CHARS);
  return JSON.stringify([name, start(textOf(content)), error === undefined ? null : start(error)]);
}
