// The log of a process that serves.

import type { FastifyBaseLogger } from "fastify";
import { pino } from "pino";
import type { ServerConfig } from "../config/server.ts";

/** JSON lines on stderr. */
export const createLogger = ({ log_level }: Pick<ServerConfig, "log_level">): FastifyBaseLogger =>
  pino({ level: log_level }, pino.destination({ dest: 2, sync: false }));
