// The logger interface used by all rooms. Pino, Fastify's logger and a program's own logger can implement it.

type Log = (details: object, message: string) => void;

/** Each method takes the details first, followed by the message. */
export interface Logger {
  debug?: Log;
  info: Log;
  warn: Log;
  error: Log;
}

/** Discards everything. */
export const SILENT: Logger = { info() {}, warn() {}, error() {} };
