// What can go wrong with a server.

import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../lib/logger.ts";
import { firstChars } from "../../lib/text.ts";
import type { McpServerDefinition } from "./options.ts";

/**
 * `forgotten`: it no longer knows our session, and has done nothing. `answered`: it refuses. `ended`: the
 * connection is gone, and what it did is not known. `strange`: it cannot be understood.
 */
export type FailureKind = "forgotten" | "answered" | "ended" | "strange";

/** The message completes "The server …". No path, address or secret of ours is in it. */
export class McpFailure extends Error {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "McpFailure";
    this.kind = kind;
  }
}

/** Of a server that is not in the configuration any more, or whose process ends with ours. */
export const dismissed = () => new McpFailure("ended", "is not configured any more");

// What a server was given to prove who we are, kept out of whatever it says.
const SECRET_NAME = /key|secret|token|password|credential|auth|cookie/i;
/** Shorter values are no secrets, and would be found in any text. */
const MIN_LENGTH = 6;

export type Mask = (text: string) => string;

/** The error as the log may have it: its message and its stack, and those of its causes. */
export function maskedError(error: unknown, mask: Mask): Error {
  if (!(error instanceof Error)) return new Error(mask(String(error)));
  const cause = error.cause === undefined ? undefined : maskedError(error.cause, mask);
  const masked = new Error(mask(error.message), { cause });
  masked.name = error.name;
  masked.stack = mask(error.stack ?? error.message);
  return masked;
}

/** Blots out the values of those headers, variables and parameters of the URL whose names sound like a secret. */
export function maskOf(definition: McpServerDefinition): Mask {
  const named =
    "url" in definition
      ? [...Object.entries(definition.headers), ...new URL(definition.url).searchParams]
      : Object.entries(definition.env);
  const secrets = named
    .filter(([name]) => SECRET_NAME.test(name))
    .flatMap(([, value]) => [value, ...value.split(/\s+/)])
    .filter((value) => value.length >= MIN_LENGTH && !/^bearer$/i.test(value))
    .sort((a, b) => b.length - a.length);
  return (text) => secrets.reduce((masked, secret) => masked.replaceAll(secret, "***"), text);
}

// What the log says of one server: a line each, short, and without what the server was given to prove who we are.
const MAX_DETAIL = 500;

/** `what` completes "MCP server …"; `detail` is what was thrown, or a text. */
export type Log = (level: "debug" | "warn", what: string, detail?: unknown) => void;

export function logOf(server: string, logger: Logger, mask: Mask): Log {
  return (level, what, detail) => {
    const told = detail === undefined ? {} : { detail: firstChars(mask(messageOf(detail)), MAX_DETAIL) };
    logger[level]?.({ server, ...told }, mask(`MCP server \`${server}\` ${what}`));
  };
}
