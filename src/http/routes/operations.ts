// Operations: liveness and readiness, the API reference, and stream tickets.

import { createReadStream } from "node:fs";
import { z } from "zod";
import { AppError } from "../../core/errors.ts";
import { sharedFor } from "../../lib/async.ts";
import { packageRoot } from "../../lib/paths.ts";
import { principalOf } from "../auth/guard.ts";
import { STREAM_PATH } from "../auth/scopes.ts";
import type { Tickets } from "../auth/tickets.ts";
import type { HttpServices } from "../services.ts";
import type { App } from "../validation.ts";

/** How long an outcome of `/ready` counts, in ms: the route is public. */
const READY_MS = 1_000;

export function healthRoutes(app: App, { stores, runs, backends, version, agents }: HttpServices): void {
  const tags = ["operations"];
  const areReachable = sharedFor(READY_MS, () => Promise.all([stores.ping(), backends.ping()]));

  app.get(
    "/health",
    {
      exposeHeadRoute: true,
      schema: {
        summary: "Liveness check",
        tags,
        response: { 200: z.object({ status: z.literal("ok"), version: z.string(), agents: z.int() }) },
      },
    },
    async () => ({ status: "ok" as const, version, agents: agents.list().length }),
  );

  app.get(
    "/ready",
    {
      exposeHeadRoute: true,
      schema: {
        summary: "Readiness: the store and the backends are reachable",
        tags,
        response: { 200: z.object({ status: z.literal("ready") }) },
      },
    },
    async () => {
      if (runs.executor.isClosing) throw new AppError("shutting_down", "The server is shutting down.");
      await areReachable();
      return { status: "ready" as const };
    },
  );
}

const ASSETS: ReadonlyMap<string, string> = new Map([
  ["swagger-ui.css", "text/css"],
  ["swagger-ui-bundle.js", "text/javascript"],
]);

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Skein API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<div id="api"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script>SwaggerUIBundle({ url: "/openapi.yaml", dom_id: "#api", deepLinking: true });</script>
</html>
`;

export function docsRoutes(app: App): void {
  const schema = { hide: true };

  app.get("/", { schema }, async (_request, reply) => reply.redirect("/docs"));
  app.get("/docs", { schema }, async (_request, reply) => reply.type("text/html").send(PAGE));
  app.get("/openapi.yaml", { schema }, async (_request, reply) =>
    reply.type("application/yaml").send(createReadStream(new URL("openapi.yaml", packageRoot))),
  );
  app.get<{ Params: { asset: string } }>("/docs/:asset", { schema }, async ({ params }, reply) => {
    const type = ASSETS.get(params.asset);
    if (!type) throw new AppError("not_found", `There is no \`${params.asset}\` in the documentation.`);
    const file = new URL(`dist/swagger-ui/${params.asset}`, packageRoot); // put there by script/build
    return reply.type(type).header("cache-control", "max-age=86400").send(createReadStream(file));
  });
}

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
        summary: "Create a ticket with which a browser's EventSource opens one stream within a minute",
        description:
          "Valid for that path only, to read. If the stream breaks later, get a new ticket and continue with `?after=`.",
        tags: ["operations"],
        body: TicketBody,
        response: { 201: Ticket },
      },
    },
    async (request, reply) => reply.code(201).send(tickets.issue(principalOf(request), request.body.path)),
  );
}
