// Old tool results are shortened (trimming) and old turns left out (sliding_window) in what the model is shown; the thread
// keeps them whole. Both move in steps, so that most requests start like the previous one and hit the prompt cache.

import { z } from "zod";
import { firstChars } from "../../lib/text.ts";
import { defineHook } from "../core/hook.ts";
import { type Message, systemMessages, type ToolMessage, textOf } from "../core/message.ts";

export const trimming = defineHook({
  name: "trimming",
  userMay: "configure",
  options: z.strictObject({
    keep: z.int().min(0).max(1000).default(4).describe("The newest results, so many at least, stay whole."),
    max_chars: z.int().min(0).max(1_000_000).default(500).describe("Characters that stay of an older one."),
    step: z.int().min(1).max(1000).default(8).describe("Results are shortened so many at a time."),
  }),
  activeByDefault: () => false,
  create: ({ keep, max_chars, step }) => ({
    name: "trimming",
    modifyRequest(request) {
      const results = request.messages.filter(({ role }) => role === "tool").length;
      let old = Math.floor(Math.max(0, results - keep) / step) * step;
      if (old === 0) return request;
      const messages = request.messages.map((message) =>
        message.role === "tool" && old-- > 0 ? trimmed(message, max_chars) : message,
      );
      return { ...request, messages };
    },
  }),
});

/** Errors stay whole: they say what not to repeat. Images are removed. */
function trimmed(message: ToolMessage, limit: number): ToolMessage {
  const { content, error } = message;
  if (error !== undefined) return message;
  const text = textOf(content);
  const head = firstChars(text, limit);
  if (head === text) return typeof content === "string" ? message : { ...message, content: text };
  const short = `${head}\n[… ${text.length - head.length} characters of this old result are left out]`;
  return { ...message, content: short.length < text.length ? short : text };
}

/** Shows the newest turns only, each whole or not at all, so that no call loses its result. */
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
