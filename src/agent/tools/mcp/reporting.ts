// Reports servers' failures to the log and the model, briefly and without the servers' secrets.

import type { Logger } from "../../../lib/logger.ts";
import { type Mask, maskOf } from "../../../lib/mask.ts";
import { firstChars } from "../../../lib/text.ts";
import { messageOf } from "../../core/errors.ts";
import type { McpServerDefinition } from "./options.ts";

/**
 * `forgotten`: the session has expired, and the call had no effect. `unauthorized`: the server refused the token, and the
 * call had no effect. `insufficient`: the token lacks scopes, and the call had no effect. `answered`: the server refused the
 * call. `ended`: the connection ended, and the effect is unknown. `strange`: the response is invalid.
 */
export type FailureKind = "forgotten" | "unauthorized" | "insufficient" | "answered" | "ended" | "strange";

/**
 * A failure of a server. The message completes "The server …". It contains no paths, addresses or secrets of
 * this server.
 */
export class McpFailure extends Error {
  readonly kind: FailureKind;
  /** For `insufficient`, the scopes that the server names. */
  missingScopes: readonly string[] = [];
  /** The address that the server's user must open first. The call had no effect. */
  visit: { readonly url: string; readonly message: string } | undefined;

  constructor(kind: FailureKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "McpFailure";
    this.kind = kind;
  }
}

/** Returns the failure for a server that was removed from the configuration, and for a shutdown. */
export const dismissed = () => new McpFailure("ended", "is no longer configured");

/** Masks the secrets in the server's headers, variables and URL. */
export function maskOfServer(definition: McpServerDefinition): Mask {
  return maskOf(
    "url" in definition
      ? [...Object.entries(definition.headers), ...new URL(definition.url).searchParams]
      : Object.entries(definition.env),
  );
}

const MAX_DETAIL = 500;

/**
 * `what` completes "MCP server …". `detail` is the thrown value or a string. `said` contains the server's
 * last output.
 */
export type Log = (level: "debug" | "warn", what: string, detail?: unknown, said?: readonly string[]) => void;

export function logOf(server: string, logger: Logger, mask: Mask): Log {
  return (level, what, detail, said = []) => {
    const told = detail === undefined ? {} : { detail: firstChars(mask(messageOf(detail)), MAX_DETAIL) };
    // Masks the lines as one string, because a secret may contain a line break.
    const printed = said.length > 0 ? { said: mask(said.join("\n")).split("\n") } : {};
    logger[level]?.({ server, ...told, ...printed }, mask(`MCP server \`${server}\` ${what}`));
  };
}

const LAST_LINES = 10;
const MAX_LINE = 300;

/** Collects the last lines that a server printed. */
export function createTail() {
  const lines: string[] = [];
  return {
    lines: lines as readonly string[],
    add(line: string) {
      lines.push(firstChars(line, MAX_LINE));
      if (lines.length > LAST_LINES) lines.shift();
    },
  };
}
