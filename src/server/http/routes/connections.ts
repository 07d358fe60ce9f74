// Connections: credentials for other services, which a user provides, or a tenant for all its users.

import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError } from "../../../agent/core/errors.ts";
import { Connection, ConnectionSpec, type Keeper, noConnection } from "../../../engine/vault/credential.ts";
import type { Vault } from "../../../engine/vault/index.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { Id } from "../../../protocol/ids.ts";
import { ownerOf, principalOf } from "../../auth/guard.ts";
import { OwnerName } from "../../auth/principal.ts";
import { clientDisconnect } from "../client-disconnect.ts";
import { etagOf, expectedIn, IfMatch } from "../document-versions.ts";
import { PageQuery, pageOf } from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import type { App } from "../validation.ts";
import { note, reachOf, WHO } from "./admin.ts";

const Params = z.object({ connection_id: Id });
const Deleted = z
  .object({
    is_revoked: z
      .boolean()
      .describe(
        "True if the issuer confirmed that all tokens are revoked. False if it has no `revocation_endpoint`, and while a process renews the tokens: it revokes the new ones itself.",
      ),
  })
  .meta({ id: "DeletedConnection" });

const Authorization = z
  .object({
    url: z
      .string()
      .describe(
        "Address of this server for the person to open in a browser. The address works once and connects one account.",
      ),
    expires_at: z.iso.datetime(),
  })
  .meta({ id: "ConnectionAuthorization" });

const Connections = pageOf(Connection).extend({
  not_connected: z
    .array(z.object({ id: Id, mcp_server_url: z.string() }).meta({ id: "ConnectableServer" }))
    .optional()
    .describe(
      "Only on the first page: MCP servers with accounts that can be connected with `authorize` but are not connected yet.",
    ),
});

/** The differences between the routes for users and for admins. */
interface Variant {
  readonly base: "/me/connections" | "/admin/connections";
  readonly tags: string[];
  readonly of: string;
  readonly query: z.ZodObject;
  /** Throws `not_found` for a tenant that the caller may not access. */
  keeperOf(request: FastifyRequest): Keeper;
  /** Called after a change. */
  changed(request: FastifyRequest, act: string, id: string): void;
}

export function connectionRoutes(app: App, services: RouteServices): void {
  routesAt(app, services, {
    base: "/me/connections",
    tags: ["connections"],
    of: "for your own use.",
    query: z.strictObject({}),
    keeperOf: ownerOf,
    changed() {},
  });
  routesAt(app, services, {
    base: "/admin/connections",
    tags: ["admin"],
    of: `for all users of a tenant. ${WHO}`,
    query: z.strictObject({ tenant: OwnerName.optional().describe("Default: your tenant.") }),
    keeperOf(request) {
      const principal = principalOf(request);
      const { tenant = principal.tenant } = request.query as { tenant?: string };
      if (!reachOf(principal, { tenant })) throw new AppError("not_found", "There is no such connection.");
      return { tenant };
    },
    changed(request, act, connection) {
      const { tenant } = request.query as { tenant?: string };
      note(request, act, { tenant: tenant ?? principalOf(request).tenant, connection });
    },
  });
}

function routesAt(app: App, services: RouteServices, variant: Variant): void {
  writingRoutes(app, services, variant);
  authorizingRoute(app, services, variant);
  readingRoutes(app, services, variant);
}

function writingRoutes(
  app: App,
  { vault }: RouteServices,
  { base, tags, of, query, keeperOf, changed }: Variant,
): void {
  app.put(
    `${base}/:connection_id`,
    {
      schema: {
        summary: "Create or replace a connection",
        description: `Stores credentials for another service, ${of}\n\nThe server encrypts tokens and values and never returns them. The id of a connection for an MCP server is the server's name in \`mcp_servers\`.`,
        tags,
        params: Params,
        querystring: query,
        headers: IfMatch,
        body: ConnectionSpec,
        response: { 200: Connection, 201: Connection },
      },
    },
    async (request, reply) => {
      const { connection_id: id } = request.params;
      const precondition = expectedIn(request.headers);
      const { connection, version, isNew } = await opened(vault).put(keeperOf(request), id, request.body, {
        precondition,
      });
      changed(request, "put_connection", id);
      return reply
        .code(isNew ? 201 : 200)
        .header("etag", etagOf(version))
        .send(connection);
    },
  );

  app.delete(
    `${base}/:connection_id`,
    {
      schema: {
        summary: "Delete a connection",
        description:
          "After the deletion, the server revokes the tokens at the issuer. It also ends each consent whose tokens it has not stored yet, even if it answers 404.",
        tags,
        params: Params,
        querystring: query,
        headers: IfMatch,
        response: { 200: Deleted },
      },
    },
    async (request) => {
      const { connection_id: id } = request.params;
      const precondition = expectedIn(request.headers);
      const by = ownerOf(request);
      const { isRevoked } = await opened(vault).delete(keeperOf(request), id, { precondition, by });
      changed(request, "delete_connection", id);
      return { is_revoked: isRevoked };
    },
  );
}

function authorizingRoute(
  app: App,
  { vault, oauth }: RouteServices,
  { base, tags, of, query, keeperOf, changed }: Variant,
): void {
  app.post(
    `${base}/:connection_id/authorize`,
    {
      schema: {
        summary: "Connect an account in a browser",
        description: `Starts the OAuth flow for an MCP server with \`auth\` in \`mcp_servers\`. The connection's id is the name of the server, and the connection is ${of}\n\nReturns an address to open in the person's browser. Once the person has agreed, the connection contains their tokens, and the runs that wait for it continue.`,
        tags,
        params: Params,
        querystring: query,
        response: { 200: Authorization },
      },
    },
    async (request, reply) => {
      const { connection_id: server } = request.params;
      opened(vault);
      if (!oauth) throw noConnection(server);
      const signal = clientDisconnect(reply);
      const by = ownerOf(request);
      const authorization = await oauth.authorize(keeperOf(request), { server, by, signal });
      changed(request, "authorize_connection", server);
      return authorization;
    },
  );
}

function readingRoutes(
  app: App,
  { vault, oauth }: RouteServices,
  { base, tags, of, query, keeperOf }: Variant,
): void {
  app.get(
    base,
    {
      schema: {
        summary: "List connections, by id",
        description: `Lists connections ${of}`,
        tags,
        querystring: PageQuery.extend(query.shape),
        response: { 200: Connections },
      },
    },
    async (request) => {
      // `query` only adds fields to `PageQuery`.
      const { limit, cursor } = request.query as z.infer<typeof PageQuery>;
      const keeper = keeperOf(request);
      if (!vault) return { items: [] };
      const [page, not_connected] = await Promise.all([
        vault.list(keeper, { limit, ...omitUndefined({ cursor }) }),
        cursor === undefined ? oauth?.notConnected(keeper) : undefined,
      ]);
      return { ...page, ...omitUndefined({ not_connected: not_connected && [...not_connected] }) };
    },
  );

  app.get(
    `${base}/:connection_id`,
    {
      schema: {
        summary: "Get a connection",
        tags,
        params: Params,
        querystring: query,
        response: { 200: Connection },
      },
    },
    async (request, reply) => {
      const { connection_id: id } = request.params;
      const found = await vault?.get(keeperOf(request), id);
      if (!found) throw noConnection(id);
      return reply.header("etag", etagOf(found.version)).send(found.connection);
    },
  );
}

function opened(vault: Vault | undefined): Vault {
  if (vault) return vault;
  throw new AppError(
    "invalid_request",
    "This server keeps no credentials, because its setting VAULT_KEY (`vault.key`) is not set.",
  );
}
