// Which message a run may take the place of.

import { AppError } from "../core/errors.ts";
import type { Message } from "../core/message.ts";

/** Throws `invalid_request`, with what would be right. */
export function checkReplaced(messages: readonly Message[], id: string): void {
  const message = messages.find((each) => each.id === id);
  if (message?.role === "user") return;
  const what = message
    ? `message \`${id}\` is of role \`${message.role}\``
    : `there is no message \`${id}\` in this thread`;
  const right = "It must be a user's message of this thread, as `GET /threads/:id/messages` lists them.";
  throw new AppError("invalid_request", `replaces: ${what}. ${right}`);
}
