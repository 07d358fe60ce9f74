// Shortens old tool results in requests to the model. The thread keeps the complete results. The boundary moves in steps, so
// most requests begin like the previous one and hit the prompt cache.

import { z } from "zod";
import { firstChars } from "../../lib/text.ts";
import { defineHook } from "../core/hook.ts";
import { type ToolMessage, textOf } from "../core/message.ts";

export const trimming = defineHook({
  name: "trimming",
  userMay: "configure",
  options: z.strictObject({
    keep: z.int().min(0).max(1000).default(4).describe("Minimum number of recent results to keep in full."),
    max_chars: z
      .int()
      .min(0)
      .max(1_000_000)
      .default(500)
      .describe("Characters to keep from each older result."),
    step: z.int().min(1).max(1000).default(8).describe("Number of results to shorten at a time."),
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

/**
 * Shortens a message and removes its images. Does not shorten errors, because they show the model what not to
 * repeat.
 */
function trimmed(message: ToolMessage, limit: number): ToolMessage {
  const { content, error } = message;
  if (error !== undefined) return message;
  const text = textOf(content);
  const head = firstChars(text, limit);
  if (head === text) return typeof content === "string" ? message : { ...message, content: text };
  const short = `${head}\n[… ${text.length - head.length} characters of this old result are left out]`;
  return { ...message, content: short.length < text.length ? short : text };
}
