// Adds a message before the conversation in every request. The message is not part of the thread, summaries or windows.

import { z } from "zod";
import { defineHook } from "../core/hook.ts";
import { userMessage } from "../core/message.ts";

export const context = defineHook({
  name: "context",
  options: z.strictObject({
    text: z
      .string()
      .trim()
      .min(1)
      .max(65_536)
      .describe("Text that the model receives as the user's first message."),
  }),
  activeByDefault: () => false,
  create({ text }) {
    const message = userMessage(text);
    return {
      name: "context",
      // This is not done in `modifyRequest`, because summaries and windows must process only the
      // conversation.
      wrapModelCall(request, next, { messages }, deltas) {
        const newest = messages.at(-1)?.id;
        // Other requests, such as for a summary, do not contain the most recent message.
        const isConversation = request.messages.some(({ id }) => id === newest);
        const asked = isConversation ? { ...request, messages: [message, ...request.messages] } : request;
        return next(asked, deltas);
      },
    };
  },
});
