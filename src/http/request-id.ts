// Each request has an id, its caller's or one made here: in the answer, in the lines that the log has of it and in those of
// the runs that it starts.

import { type FastifyReply, type FastifyRequest, type FastifyServerOptions, LogController } from "fastify";
import { randomId } from "../lib/random-id.ts";

const HEADER = "x-request-id";
/** Another one is replaced: ids are written to logs. */
const ACCEPTED = /^[\w.-]{1,64}$/;

/** Of the server: how ids are made, and where the log has them. */
export const requestIds: Pick<FastifyServerOptions, "genReqId" | "logController"> = {
  genReqId({ headers }) {
    const sent = headers[HEADER];
    return typeof sent === "string" && ACCEPTED.test(sent) ? sent : `req_${randomId()}`;
  },
  logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: "request_id" }),
};

/** As a first hook, so that refusals have it too. */
export async function sendRequestId(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  reply.header(HEADER, request.id);
}
