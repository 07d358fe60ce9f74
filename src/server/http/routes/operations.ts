// Operations: liveness and readiness, the API reference, the caller's identity, and tickets.

import { createReadStream } from "node:fs";
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError } from "../../../agent/core/errors.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { packageRoot } from "../../../lib/paths.ts";
import { kindOf, SchemeKind } from "../../auth/config.ts";
import { principalOf } from "../../auth/guard.ts";
import { Scope } from "../../auth/principal.ts";
import { TICKET_PATH } from "../../auth/scopes.ts";
import { SignInOptions } from "../../auth/sign-in.ts";
import type { Tickets } from "../../auth/tickets.ts";
import { WireName } from "../../config/wire-names.ts";
import type { DependencyState } from "../dependencies.ts";
import type { HttpServices, RouteServices } from "../services.ts";
import type { App } from "../validation.ts";

const DependencyStatus = z
  .object({
    name: z.string(),
    status: z.enum(["up", "down"]),
    since: z.iso.datetime().describe("Time of the last status change."),
    checked_at: z.iso.datetime(),
    error: z.string().optional(),
  })
  .meta({ id: "DependencyStatus" });

export function healthRoutes(app: App, services: RouteServices): void {
  const { runs, version, agents, dependencies, isOperator } = services;
  const tags = ["operations"];

  app.get(
    "/health",
    {
      schema: {
        summary: "Check liveness",
        tags,
        response: { 200: z.object({ status: z.literal("ok"), version: z.string(), agents: z.int() }) },
      },
    },
    async () => ({ status: "ok" as const, version, agents: agents.list().length }),
  );

  app.get(
    "/ready",
    {
      schema: {
        summary: "Check readiness: whether the server can reach its store and backends",
        description:
          "With `verbose` and either the scope `admin` or the metrics token, returns the status of each dependency. A 503 response lists them in `details`.",
        tags,
        querystring: z.strictObject({ verbose: z.string().optional() }),
        response: {
          200: z.object({
            status: z.literal("ready"),
            dependencies: z.array(DependencyStatus).optional(),
          }),
        },
      },
    },
    async (request) => {
      if (runs.executor.isClosing) throw new AppError("shutting_down", "The server is shutting down.");
      const isVerbose = request.query.verbose !== undefined && (await isOperator(request));
      const states = await dependencies.states();
      const shown = isVerbose ? { dependencies: states.map(statusOf) } : {};
      const down = states.find(({ isUp, isOptional }) => !isUp && !isOptional)?.error;
      if (!down) return { status: "ready" as const, ...shown };
      throw new AppError(down.code, down.message, { cause: down, details: { ...down.details, ...shown } });
    },
  );
}

const statusOf = ({ name, isUp, since, checked_at, error }: DependencyState) => ({
  name,
  status: isUp ? ("up" as const) : ("down" as const),
  since,
  checked_at,
  ...omitUndefined({ error: error?.message }),
});

/** Not part of the API's contract, because Prometheus has its own format. */
export function metricsRoutes(app: App, { metrics, requireOperator }: RouteServices): void {
  if (!metrics) return;
  app.get("/metrics", { schema: { hide: true } }, async (request, reply) => {
    await requireOperator(request);
    const { contentType, read } = takesOpenMetrics(request) ? metrics.openMetrics : metrics.text;
    return reply
      .type(contentType)
      .header("vary", "accept")
      .send(await read());
  });
}

const takesOpenMetrics = ({ headers }: FastifyRequest) =>
  headers.accept?.includes("application/openmetrics-text") ?? false;

const ASSETS: ReadonlyMap<string, string> = new Map([
  ["swagger-ui.css", "text/css"],
  ["swagger-ui-bundle.js", "text/javascript"],
]);

/** Its links are relative, because a proxy may remove a path prefix. */
const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Skein API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<div id="api"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script type="module">
  const spec = await (await fetch("openapi.json")).json();
  const servers = [{ url: new URL(".", location).href.slice(0, -1) }];
  SwaggerUIBundle({ spec: { ...spec, servers }, dom_id: "#api", deepLinking: true });
</script>
</html>
`;

export function docsRoutes(app: App): void {
  const schema = { hide: true };

  app.get("/docs", { schema }, async (_request, reply) => reply.type("text/html").send(PAGE));
  app.get("/openapi.yaml", { schema }, async (_request, reply) =>
    reply.type("application/yaml").send(createReadStream(new URL("openapi.yaml", packageRoot))),
  );
  app.get(
    "/openapi.json",
    { schema },
    async (_request, reply) =>
      reply.type("application/json").send(createReadStream(new URL("dist/openapi.json", packageRoot))), // script/build creates this file
  );
  app.get<{ Params: { asset: string } }>("/docs/:asset", { schema }, async ({ params }, reply) => {
    // Below `/docs/`, the page's relative links would be wrong.
    if (params.asset === "") return reply.redirect("../docs");
    const type = ASSETS.get(params.asset);
    if (!type) throw new AppError("not_found", `The API reference has no file \`${params.asset}\`.`);
    const file = new URL(`dist/swagger-ui/${params.asset}`, packageRoot); // script/build creates this file
    return reply.type(type).header("cache-control", "max-age=86400").send(createReadStream(file));
  });
}

const Me = z
  .object({
    tenant: z.string(),
    user: z.string(),
    scopes: z.array(Scope),
    auth: SchemeKind.describe("How the server authenticates requests."),
    expires_at: z.iso.datetime().optional().describe("Time when the credentials expire."),
    wires: z.array(WireName).describe("Enabled front-end protocols."),
    version: z.string().describe("Version of the server."),
    currency: z.string().optional().describe("Currency of costs. Absent if none is configured."),
  })
  .meta({ id: "Me" });

export function meRoutes(app: App, { access: { auth }, wires, version, quotas }: HttpServices): void {
  app.get(
    "/me",
    {
      schema: {
        summary: "Get your tenant, user and scopes",
        tags: ["operations"],
        response: { 200: Me },
      },
    },
    async (request) => {
      const { tenant, user, scopes, expires_at } = principalOf(request);
      const end = expires_at === undefined ? {} : { expires_at: new Date(expires_at).toISOString() };
      const { currency } = quotas;
      const shown = { scopes: [...scopes], auth: kindOf(auth.scheme), wires: [...wires], version };
      return { tenant, user, ...shown, ...(currency === undefined ? {} : { currency }), ...end };
    },
  );
}

export function signInRoutes(app: App, signIn: () => Promise<SignInOptions>): void {
  app.get(
    "/sign-in",
    {
      schema: {
        summary: "Get the sign-in options for a front end",
        tags: ["operations"],
        response: { 200: SignInOptions },
      },
    },
    () => signIn(),
  );
}

const TicketBody = z
  .strictObject({
    path: z
      .string()
      .regex(
        TICKET_PATH,
        "must be the path of a stream or a file, such as /threads/my-thread/events or /backend/files/a.png, without a query",
      ),
  })
  .meta({ id: "NewTicket" });

const Ticket = z
  .object({
    ticket: z.string().describe("Value of the query parameter `ticket`."),
    expires_at: z.iso.datetime(),
  })
  .meta({ id: "Ticket" });

export function ticketRoutes(app: App, tickets: Tickets): void {
  app.post(
    "/tickets",
    {
      schema: {
        summary: "Create a ticket for a browser to open one stream or file",
        description:
          "For EventSource, links and images, which cannot send headers. A ticket is valid for a minute and allows reads of one path. If the stream breaks later, get a new ticket and continue with `?after=`.",
        tags: ["operations"],
        body: TicketBody,
        response: { 201: Ticket },
      },
    },
    async (request, reply) => reply.code(201).send(tickets.issue(principalOf(request), request.body.path)),
  );
}
