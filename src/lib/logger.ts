// What every room logs through: pino, Fastify's logger, or a program's own.

type Log = (details: object, message: string) => void;

/** Details first, then the message. A logger without `debug` drops what is only for debugging. */
export interface Logger {
  debug?: Log;
  info: Log;
  warn: Log;
  error: Log;
}
