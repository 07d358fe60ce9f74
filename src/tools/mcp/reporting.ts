// Failures of servers, and how they reach the log and the model: short, and without the secrets that the server was given.

import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../lib/logger.ts";
import { firstChars } from "../../lib/text.ts";
import type { McpServerDefinition } from "./options.ts";

/**
 * `forgotten`: the session has expired, and the call had no effect. `answered`: the server refuses. `ended`: the connection ended,
 * and the effect is unknown. `strange`: the answer is invalid.
 */
export type FailureKind = "forgotten" | "answered" | "ended" | "strange";

/** The message completes "The server …". It contains no path, address or secret of this server. */
export class McpFailure extends Error {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "McpFailure";
    this.kind = kind;
  }
}

/** For a server that was removed from the configuration, or at shutdown. */
export const dismissed = () => new McpFailure("ended", "is not configured any more");

const SECRET_NAME = /key|secret|token|password|credential|auth|cookie/i;
/** Shorter values are no secrets and would match everywhere. */
const MIN_LENGTH = 6;

export type Mask = (text: string) => string;

/** A copy for the log: message, stack and causes, masked. */
export function maskedError(error: unknown, mask: Mask): Error {
  if (!(error instanceof Error)) return new Error(mask(String(error)));
  const cause = error.cause === undefined ? undefined : maskedError(error.cause, mask);
  const masked = new Error(mask(error.message), { cause });
  masked.name = error.name;
  masked.stack = mask(error.stack ?? error.message);
  return masked;
}

/** Masks the values of headers, variables and URL parameters whose names suggest a secret. */
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

const MAX_DETAIL = 500;

/** `what` completes "MCP server …"; `detail` is what was thrown, or a text. */
export type Log = (level: "debug" | "warn", what: string, detail?: unknown) => void;

export function logOf(server: string, logger: Logger, mask: Mask): Log {
  return (level, what, detail) => {
    const told = detail === undefined ? {} : { detail: firstChars(mask(messageOf(detail)), MAX_DETAIL) };
    logger[level]?.({ server, ...told }, mask(`MCP server \`${server}\` ${what}`));
  };
}
