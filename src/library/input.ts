// What a program says to an agent: a text, parts, or messages.

import { AppError } from "../core/errors.ts";
import { type Content, type Message, type Part, type UserMessage, userMessage } from "../core/message.ts";
import { validate } from "../core/messages.ts";

export type Input = Content | readonly Message[];

/** Throws `invalid_request` for an empty input, or messages that are not well formed. */
export function messagesOf(input: Input): readonly Message[] {
  const messages = isMessages(input) ? input : [userMessage(asContent(input))];
  if (messages.length === 0) throw new AppError("invalid_request", "The input cannot be empty.");
  const [fault] = validate(messages);
  if (fault !== undefined) throw new AppError("invalid_request", `The input is not well formed: ${fault}.`);
  return messages;
}

/** The same for a run that is at work: only users may interpose. */
export function userMessagesOf(input: Input): readonly UserMessage[] {
  return messagesOf(input).map((message) => {
    if (message.role === "user") return message;
    throw new AppError(
      "invalid_request",
      `A running run takes messages of users only, not of ${message.role}.`,
    );
  });
}

const isMessages = (input: Input): input is readonly Message[] =>
  typeof input !== "string" && input.every((each) => "role" in each);

// What holds no message holds parts.
const asContent = (input: Input) => input as string | Part[];
