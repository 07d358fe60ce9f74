// What the log says of one server: a line each, short, and without what the server was given to prove who we are.

import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../lib/logger.ts";
import { firstChars } from "../../lib/text.ts";
import type { Mask } from "./secrets.ts";

const MAX_DETAIL = 500;

/** `what` completes "MCP server …"; `detail` is what was thrown, or a text. */
export type Log = (level: "debug" | "warn", what: string, detail?: unknown) => void;

export function logOf(server: string, logger: Logger, mask: Mask): Log {
  return (level, what, detail) => {
    const told = detail === undefined ? {} : { detail: firstChars(mask(messageOf(detail)), MAX_DETAIL) };
    logger[level]?.({ server, ...told }, mask(`MCP server \`${server}\` ${what}`));
  };
}
