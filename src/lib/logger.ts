// The logger interface of all rooms, implemented by pino, by Fastify's logger, or by a program's own.

type Log = (details: object, message: string) => void;

/** Each method takes the details first, then the message. */
export interface Logger {
  debug?: Log;
  info: Log;
  warn: Log;
  error: Log;
}

/** Discards everything. */
export const SILENT: Logger = { info() {}, warn() {}, error() {} };
