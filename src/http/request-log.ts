// What a request looks like in the log.

import type { FastifyBaseLogger, FastifyRequest } from "fastify";

/** A logger that tells method and path of a request, whoever logs it: no query, which may hold a ticket, no header. */
export function withoutQueries(logger: FastifyBaseLogger): FastifyBaseLogger {
  const req = ({ method, url = "" }: FastifyRequest) => ({ method, path: url.split("?", 1)[0] });
  return logger.child({}, { serializers: { req } });
}
