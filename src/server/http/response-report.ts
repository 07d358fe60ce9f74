// Reports each response of the server, for the metrics.

import type { FastifyReply, FastifyRequest } from "fastify";
import { hasCode } from "../../agent/core/errors.ts";
import { isHandedOn } from "./parts.ts";
import type { HttpServer } from "./server.ts";

/** Implementations must return at once and must not throw. */
export interface ResponseReport {
  answered(answer: ResponseRecord): void;
  /** A request was refused at this limit. */
  refused(limit: string): void;
  /** A client resumed a stream after a cursor. */
  resumed(): void;
}

export interface ResponseRecord {
  /** The route as declared, such as `/threads/:thread_id`. Undefined for an unknown route. */
  readonly route: string | undefined;
  readonly method: string;
  readonly status: number;
  /** Undefined for an event stream, because its duration depends on the client. */
  readonly seconds: number | undefined;
}

export function reportResponses(server: HttpServer, report: ResponseReport): void {
  server.addHook("onResponse", async (request, reply) => {
    if (isHandedOn(request)) return;
    const isStream = isEventStream(reply);
    report.answered({
      route: request.is404 ? undefined : request.routeOptions.url,
      method: request.method,
      status: reply.statusCode,
      seconds: isStream ? undefined : reply.elapsedTime / 1000,
    });
    if (isStream && hasCursor(request)) report.resumed();
  });
  server.addHook("onError", async (_request, _reply, error) => {
    if (!hasCode(error, "limit_exceeded")) return;
    const { limit } = error.details ?? {};
    report.refused(typeof limit === "string" ? limit : "other");
  });
}

const isEventStream = ({ raw }: FastifyReply) =>
  String(raw.getHeader("content-type") ?? "").startsWith("text/event-stream");

const hasCursor = ({ headers, query }: FastifyRequest) =>
  headers["last-event-id"] !== undefined || (typeof query === "object" && query !== null && "after" in query);
