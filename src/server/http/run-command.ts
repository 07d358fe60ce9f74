// Builds the command to start a run from the body of a request.

import type { FastifyRequest } from "fastify";
import { AppError } from "../../agent/core/errors.ts";
import { type Message, systemMessage, userMessage } from "../../agent/core/message.ts";
import type { RunCommand } from "../../engine/runs/start.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { sentBy } from "../auth/guard.ts";
import { idempotencyKey } from "./run-stream.ts";
import type { StartRunBody } from "./schemas.ts";

/** Options that require a thread with messages may be missing from a body. If one is missing, its default applies. */
type AskedRun = Omit<StartRunBody, "continue" | "replaces" | "on_busy" | "on_disconnect" | "background"> &
  Partial<Pick<StartRunBody, "continue" | "replaces" | "on_busy">>;

export function commandOf(thread_id: string, body: AskedRun, request: FastifyRequest): RunCommand {
  const { agent, model, temperature, max_tokens, thinking, tool_choice, metadata, on_busy, tools } = body;
  const { output_schema } = body;
  const settings = omitUndefined({ temperature, max_tokens, thinking, tool_choice });
  return {
    thread_id,
    request: {
      input: inputOf(body),
      settings,
      ...omitUndefined({ model, output_schema, tools, ...sentBy(request) }),
    },
    metadata,
    on_busy: on_busy ?? "reject",
    ...omitUndefined({
      agent,
      calls: body.calls,
      continues: body.continue,
      rewind_to: body.replaces,
      idempotency_key: idempotencyKey(request),
    }),
  };
}

/** Throws `invalid_request` if there is a system message. Call this if the server refuses system messages. */
export function refuseSystemMessages({ messages = [] }: Pick<StartRunBody, "messages">): void {
  const at = messages.findIndex(({ role }) => role === "system");
  if (at === -1) return;
  const message = `messages[${at}].role: this server accepts no \`system\` messages from users. Use \`user\`.`;
  throw new AppError("invalid_request", message);
}

function inputOf({ input, messages = [] }: Pick<StartRunBody, "input" | "messages">): Message[] {
  if (input !== undefined) return [userMessage(input)];
  return messages.map(({ role, content }) =>
    role === "system" ? systemMessage(content) : userMessage(content),
  );
}
