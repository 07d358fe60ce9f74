// Notices a model that works on and gets nowhere: whatever it calls, the results are the same. First it is told; when
// as many results more bring nothing else, the run ends.

import { z } from "zod";
import { RunLimit } from "../core/errors.ts";
import { warning } from "../core/event.ts";
import { defineHook } from "../core/hook.ts";
import { type Message, type ToolMessage, textOf } from "../core/message.ts";
import { toolMessages } from "../core/messages.ts";
import { reminders } from "./reminders.ts";

/** Results that begin alike are alike. */
const COMPARED_CHARS = 200;

export const stallDetection = defineHook({
  name: "stall_detection",
  options: z.strictObject({
    window: z.int().min(2).max(100).default(6).describe("The newest results, so many, are compared."),
    alike: z
      .number()
      .gt(0)
      .lt(1)
      .default(0.8)
      .describe("Part of them that say what another one of them has said before."),
  }),
  activeByDefault: () => false,
  create({ window, alike }) {
    const notes = reminders();
    let toldAt: number | undefined;
    return {
      name: "stall_detection",
      // Not earlier: a hook that leaves old turns out would take the reminder for the beginning of one.
      async *wrapModelCall(request, next, run) {
        const results = resultsSinceUser(run.messages);
        const stalls = results.length >= window && repeated(results.slice(-window)) >= alike * window;
        if (!stalls) toldAt = undefined;
        else if (toldAt === undefined) {
          toldAt = results.length;
          const state = `The last ${window} results say nothing new.`;
          yield warning("stalled", state);
          notes.add(`${state} ${ADVICE}`, run);
        } else if (results.length >= toldAt + window)
          throw new RunLimit("loop_detected", `The run made no progress in ${window} further calls.`);
        return yield* next({ ...request, messages: notes.among(request.messages) });
      },
    };
  },
});

const ADVICE =
  "Step back: what do you want to find out, and why do you not? Try something of another kind, or tell the user what keeps you.";

function resultsSinceUser(messages: readonly Message[]): ToolMessage[] {
  return toolMessages(messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1));
}

/** How many of them are like one that came before. */
const repeated = (results: readonly ToolMessage[]) => results.length - new Set(results.map(likeness)).size;

function likeness({ name, content, error }: ToolMessage): string {
  const start = (text: string) => text.slice(0, COMPARED_CHARS);
  return JSON.stringify([name, start(textOf(content)), error === undefined ? null : start(error)]);
}
