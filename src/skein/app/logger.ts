// The log of a process that serves requests.

import type { FastifyBaseLogger } from "fastify";
import { pino } from "pino";
import type { ServerConfig } from "../../server/config/server.ts";
import { paintFor } from "../cli/paint.ts";
import { readableLine } from "./log-lines.ts";

/** Creates a logger that writes lines to stderr. */
export function createLogger({
  log_level,
  log_format,
}: Pick<ServerConfig, "log_level" | "log_format">): FastifyBaseLogger {
  const isText = log_format === "auto" ? process.stderr.isTTY : log_format === "text";
  if (!isText) return pino({ level: log_level }, pino.destination({ dest: 2, sync: false }));
  const paint = paintFor(process.stderr);
  return pino(
    { level: log_level },
    { write: (line) => void process.stderr.write(readableLine(line, paint)) },
  );
}
