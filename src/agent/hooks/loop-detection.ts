// Prevents a model from repeating a call. It reads the thread from the user's last message on, so approvals and crashes do
// not affect it.

import { z } from "zod";
import { isObject } from "../../lib/json.ts";
import { causeText } from "../../protocol/end-texts.ts";
import { RunLimit } from "../core/errors.ts";
import { defineHook } from "../core/hook.ts";
import { assistantMessages, type Content, type Message, type ToolCall } from "../core/message.ts";
import { failed } from "../core/tool.ts";

const times = z.int().min(2).max(100);

export const loopDetection = defineHook({
  name: "loop_detection",
  options: z
    .strictObject({
      window: times.default(10).describe("Number of recent calls to compare."),
      warn_at: times.default(3).describe("Number of identical calls after which the model is warned."),
      end_at: times.default(5).describe("Number of identical calls after which the run ends."),
      except: z
        .array(z.string().min(1))
        .default([])
        .describe("Tools that the model may call repeatedly, such as one that polls a job."),
    })
    .refine(
      ({ window, warn_at, end_at }) => warn_at < end_at && end_at <= window,
      "`warn_at` must be less than `end_at`, and `end_at` must be at most `window`",
    ),
  activeByDefault: () => false,
  create({ window, warn_at, end_at, except }) {
    const free = new Set(except);
    let looping: string | undefined;
    return {
      name: "loop_detection",

      modifyRequest(request) {
        if (looping !== undefined)
          throw new RunLimit("loop_detected", causeText(looping), { limit: "loop_detection" });
        return request;
      },

      async *wrapToolCall(request, next, run) {
        const { call } = request;
        const count = free.has(call.name) ? 0 : timesCalled(call, run.messages, window);
        if (count >= end_at) {
          looping = `\`${call.name}\` was called ${count} times with the same arguments`;
          return failed(`Not run: ${looping}.`);
        }
        const result = yield* next(request);
        if (count < warn_at || result.status !== "done") return result;
        return { ...result, output: withNote(result.output, loopNote(call, count)) };
      },
    };
  },
});

/** Counts how often the call occurs among the last `window` calls, including the call itself. */
function timesCalled({ id }: ToolCall, messages: readonly Message[], window: number): number {
  const since = messages.findLastIndex(({ role }) => role === "user");
  const calls = assistantMessages(messages.slice(since + 1)).flatMap(({ tool_calls = [] }) => tool_calls);
  const at = calls.findLastIndex((call) => call.id === id);
  const recent = calls.slice(Math.max(0, at + 1 - window), at + 1).map(identity);
  return recent.filter((each) => each === recent.at(-1)).length;
}

/** Returns a key that identifies a call. Ignores the order of the arguments. */
function identity({ name, args, malformed }: ToolCall): string {
  return JSON.stringify([name, malformed ?? args], (_, value: unknown) =>
    isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
}

function loopNote({ name }: ToolCall, count: number): string {
  return `[You have called \`${name}\` ${count} times with the same arguments. Doing it again will not help. Try a different approach, or tell the user what is stopping you.]`;
}

function withNote(output: Content, note: string): Content {
  if (typeof output === "string") return output ? `${output}\n\n${note}` : note;
  return [...output, { type: "text", text: note }];
}
