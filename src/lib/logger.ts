// The logger of every room: pino, Fastify's, or a program's own.

type Log = (details: object, message: string) => void;

/** Details first, then the message. */
export interface Logger {
  debug?: Log;
  info: Log;
  warn: Log;
  error: Log;
}

/** Keeps nothing. */
export const SILENT: Logger = { info() {}, warn() {}, error() {} };
