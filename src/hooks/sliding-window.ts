// Shows the model no more than the newest turns of a long thread; the thread keeps everything. A turn is shown
// whole or not at all, so no call is parted from its result, and the newest one always. The window stands
// still until it is full and then slides by many messages at once, so that most requests begin as the one
// before did.

import { z } from "zod";
import { defineHook } from "../core/hook.ts";
import type { Message } from "../core/message.ts";
import { systemMessages } from "../core/messages.ts";

export const slidingWindow = defineHook({
  name: "sliding_window",
  userMay: "configure",
  options: z.strictObject({
    max_messages: z
      .int()
      .min(2)
      .max(100_000)
      .default(100)
      .describe("Messages that a request may hold; the newest turn and system messages may exceed it."),
    keep: z.number().gt(0).max(1).default(0.5).describe("Part of them that stays when the window slides."),
  }),
  activeByDefault: () => false,
  create: ({ max_messages, keep }) => ({
    name: "sliding_window",
    modifyRequest(request) {
      const { messages } = request;
      const start = windowStart(messages, max_messages, keep * max_messages);
      if (start === 0) return request;
      return {
        ...request,
        messages: [...systemMessages(messages.slice(0, start)), ...messages.slice(start)],
      };
    },
  }),
});

/**
 * Where the window begins. It is moved as if the thread were said again from its beginning, so it depends on
 * nothing but the messages, and never moves back.
 */
function windowStart(messages: readonly Message[], max: number, kept: number): number {
  let start = 0;
  let turns: number[] = [];
  let open = new Set<string>();
  for (const [at, message] of messages.entries()) {
    if (message.role === "assistant") open = new Set(message.tool_calls?.map(({ id }) => id));
    if (message.role === "tool") open.delete(message.tool_call_id);
    const isTurn = message.role === "user" && messages[at - 1]?.role !== "user" && open.size === 0;
    if (isTurn) turns.push(at);
    if (at + 1 - start <= max) continue;
    start = turns.find((turn) => at + 1 - turn <= kept) ?? turns.at(-1) ?? start;
    turns = turns.filter((turn) => turn >= start);
  }
  return start;
}
