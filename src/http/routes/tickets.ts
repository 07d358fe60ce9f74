// Tickets for streams, for browsers, whose EventSource sends no headers.

import { z } from "zod";
import { principalOf } from "../auth/guard.ts";
import { STREAM_PATH } from "../auth/scopes.ts";
import type { Tickets } from "../auth/tickets.ts";
import type { App } from "../validation.ts";

const TicketBody = z
  .strictObject({
    path: z
      .string()
      .regex(STREAM_PATH, "must be the path of a stream, such as /threads/my-thread/events, without a query"),
  })
  .meta({ id: "NewTicket" });

const Ticket = z
  .object({ ticket: z.string().describe("For `?ticket=`."), expires_at: z.iso.datetime() })
  .meta({ id: "Ticket" });

export function ticketRoutes(app: App, tickets: Tickets): void {
  app.post(
    "/tickets",
    {
      schema: {
        summary: "A ticket for one stream, to be opened within a minute by a browser's EventSource",
        description:
          "It is good for that path alone, and only to read. When the stream breaks later than that, get another one and go on with `?after=`.",
        tags: ["operations"],
        body: TicketBody,
        response: { 201: Ticket },
      },
    },
    async (request, reply) =>
      reply
        .code(201)
        .header("cache-control", "no-store")
        .send(tickets.issue(principalOf(request), request.body.path)),
  );
}
