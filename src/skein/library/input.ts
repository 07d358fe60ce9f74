// The input of a run: a string, parts, or messages.

import { AppError } from "../../agent/core/errors.ts";
import {
  type Content,
  type Message,
  type Part,
  type UserMessage,
  userMessage,
  validate,
} from "../../agent/core/message.ts";

export type Input = Content | readonly Message[];

/** Throws `invalid_request` for an empty input or invalid messages. */
export function messagesOf(input: Input): readonly Message[] {
  const messages = isMessages(input) ? input : [userMessage(asContent(input))];
  if (messages.length === 0) throw new AppError("invalid_request", "The input cannot be empty.");
  const [fault] = validate(messages);
  if (fault !== undefined) throw new AppError("invalid_request", `The input is invalid: ${fault}.`);
  return messages;
}

/** Returns the input for an active run, which accepts only user messages. Throws `invalid_request`. */
export function userMessagesOf(input: Input): readonly UserMessage[] {
  return messagesOf(input).map((message) => {
    if (message.role === "user") return message;
    throw new AppError(
      "invalid_request",
      `An active run accepts only messages with role \`user\`, not \`${message.role}\`.`,
    );
  });
}

const isMessages = (input: Input): input is readonly Message[] =>
  typeof input !== "string" && input.every((each) => "role" in each);

// Safe, because an array that does not contain messages contains parts.
const asContent = (input: Input) => input as string | Part[];
