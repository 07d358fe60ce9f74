// A message in front of every conversation: shown with each request, and no part of the thread. No summary takes it in,
// and no window leaves it out.

import { z } from "zod";
import { defineHook } from "../core/hook.ts";
import { userMessage } from "../core/message.ts";

export const context = defineHook({
  name: "context",
  options: z.strictObject({
    text: z.string().trim().min(1).max(65_536).describe("What the user is made to say first."),
  }),
  activeByDefault: () => false,
  create({ text }) {
    const message = userMessage(text);
    return {
      name: "context",
      // Not earlier: what summaries and windows look at is the conversation alone.
      wrapModelCall(request, next, { messages }) {
        const newest = messages.at(-1)?.id;
        // Whatever else the model is asked, such as for a summary, is no conversation.
        const isConversation = request.messages.some(({ id }) => id === newest);
        return next(isConversation ? { ...request, messages: [message, ...request.messages] } : request);
      },
    };
  },
});
