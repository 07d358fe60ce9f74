// Credentials of users and tenants: what a request can send, what the store keeps, and what readers see. The formats
// match the vaults of OpenAI and Anthropic.

import { z } from "zod";
import type { OwnedCollection } from "../../agent/core/documents.ts";
import { AppError } from "../../agent/core/errors.ts";
import { HttpUrl } from "../../lib/http-url.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { Id } from "../../protocol/ids.ts";

/** The owner of credentials: a user or, without `user`, a tenant, whose credentials apply to all its users. */
export interface Keeper {
  readonly tenant: string;
  readonly user?: string;
}

export const connectionsOf = ({ tenant, user }: Keeper): OwnedCollection =>
  user === undefined ? { kind: "connections", tenant } : { kind: "connections", tenant, user };

const MAX_SECRET = 16_384;
const Secret = z
  .string()
  .min(1)
  .max(MAX_SECRET)
  .regex(/^[\x21-\x7e]+$/, "must consist of visible ASCII characters");
/** RFC 6749, A.2. */
const ClientSecret = z
  .string()
  .min(1)
  .max(MAX_SECRET)
  .regex(/^[\x20-\x7e]+$/, "must consist of printable ASCII characters");
/** The value of a variable can contain spaces and line breaks. */
const Value = z
  .string()
  .min(1)
  .max(MAX_SECRET)
  .refine((text) => !text.includes("\0"), "must not contain a NUL character");

const McpServerUrl = HttpUrl.describe("Address of the MCP server. The token is sent only to this address.");

const TokenEndpointAuth = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("none") }),
  z.strictObject({
    type: z.enum(["client_secret_basic", "client_secret_post"]),
    client_secret: ClientSecret,
  }),
]);

const Refresh = z
  .strictObject({
    client_id: z.string().min(1).max(2048),
    refresh_token: Secret,
    token_endpoint: HttpUrl.describe("Address where the server exchanges the refresh token."),
    token_endpoint_auth: TokenEndpointAuth.prefault({ type: "none" }).describe(
      "How the server authenticates there.",
    ),
    revocation_endpoint: HttpUrl.optional().describe(
      "Address where the server revokes the tokens when the connection is deleted (RFC 7009).",
    ),
    resource: HttpUrl.optional().describe("`resource` parameter of each token request (RFC 8707)."),
    scope: z.string().min(1).max(4096).optional(),
  })
  .describe("How the server gets a new access token. Without it, the connection ends with its access token.");

const Host = z
  .string()
  .max(255)
  .regex(/^(\*\.)?([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]*[a-z0-9])?$/, {
    error: "must be the name of a host in lower case, such as `api.example.com` or `*.example.com`",
  });
const MAX_HOSTS = 50;

const Networking = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("unrestricted") }),
  z.strictObject({
    type: z.literal("limited"),
    allowed_hosts: z.array(Host).min(1).max(MAX_HOSTS).describe("Hosts that can receive the value."),
  }),
]);

const McpOAuth = z
  .strictObject({
    type: z.literal("mcp_oauth"),
    mcp_server_url: McpServerUrl,
    access_token: Secret,
    expires_at: z.iso.datetime().optional().describe("Time when the access token expires."),
    refresh: Refresh.optional(),
  })
  .describe("Tokens of an OAuth grant.");
const StaticBearer = z
  .strictObject({ type: z.literal("static_bearer"), mcp_server_url: McpServerUrl, token: Secret })
  .describe("A token that does not change.");
const EnvironmentVariable = z
  .strictObject({
    type: z.literal("environment_variable"),
    secret_name: z
      .string()
      .max(128)
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of a variable"),
    secret_value: Value,
    networking: Networking.describe("Hosts that can receive the value."),
  })
  .describe("A variable for sandboxes.");

export const ConnectionSpec = z
  .discriminatedUnion("type", [McpOAuth, StaticBearer, EnvironmentVariable])
  .meta({ id: "ConnectionSpec" });
export type ConnectionSpec = z.infer<typeof ConnectionSpec>;

/** The secret fields of a spec, which are encrypted before they are stored. */
export interface Secrets {
  /** An access token, a static token, or the value of the variable. */
  readonly value: string;
  readonly refresh_token?: string;
  readonly client_secret?: string;
}

const PublicRefresh = Refresh.omit({ refresh_token: true, token_endpoint_auth: true }).extend({
  token_endpoint_auth: z.object({ type: z.enum(["none", "client_secret_basic", "client_secret_post"]) }),
});

const Ended = z.object({ at: z.iso.datetime(), reason: z.string() });

/** A credential as readers see it, without tokens and values. */
export const Connection = z
  .object({
    id: Id,
    type: z.enum(["mcp_oauth", "static_bearer", "environment_variable"]),
    mcp_server_url: z.string().optional(),
    expires_at: z.iso.datetime().optional().describe("Time when the current access token expires."),
    refresh: PublicRefresh.optional(),
    secret_name: z.string().optional(),
    networking: Networking.optional(),
    ended: Ended.optional().describe(
      "Present if the issuer has refused to renew the access token. Reconnect the account.",
    ),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
    last_used_at: z.iso
      .datetime()
      .optional()
      .describe(
        "Time at which an agent last used the connection, to the minute. Absent if no agent has used it.",
      ),
  })
  .meta({ id: "Connection" });
export type Connection = z.infer<typeof Connection>;

/** A credential as the store keeps it. */
export const KeptConnection = Connection.extend({
  sealed: z.string(),
  /**
   * Identifies the current value. A caller whose value was refused passes this, so a newer value is not renewed by
   * mistake.
   */
  generation: z.string(),
  /**
   * The request that a person agreed to, from which these credentials come. The credentials may have been renewed
   * since. `isOver` means that no process has to finish the request anymore.
   */
  request: z.object({ id: z.string(), isOver: z.literal(true).optional() }).optional(),
  /** The time at which a person agreed to these credentials or a client sent them, in milliseconds. Renewals do not change it. */
  chosen_at: z.int().optional(),
  /** The time after which the next use renews the access token. */
  renew_at: z.iso.datetime().optional(),
  /**
   * The last renewal, if it is in progress or has failed. No process starts another one before `until`, in milliseconds
   * since 1970 by the store's clock.
   */
  renewal: z.object({ id: z.string(), until: z.int(), failure: z.string().optional() }).optional(),
});
export type KeptConnection = z.infer<typeof KeptConnection>;

export const keptIn = (body: string): KeptConnection => KeptConnection.parse(JSON.parse(body));

/** Leaves out secrets and the store's internal fields. */
export const connectionInfo = (kept: KeptConnection): Connection => Connection.parse(kept);

/** Splits a request's spec into its public and its secret fields. */
export function splitSpec(spec: ConnectionSpec): {
  readonly secrets: Secrets;
  readonly rest: Omit<Connection, "id" | "created_at" | "updated_at" | "last_used_at">;
} {
  if (spec.type === "static_bearer") {
    const { token: value, ...rest } = spec;
    return { secrets: { value }, rest };
  }
  if (spec.type === "environment_variable") {
    const { secret_value: value, ...rest } = spec;
    return { secrets: { value }, rest };
  }
  const { access_token: value, refresh, expires_at, ...rest } = spec;
  const ofToken = { ...rest, ...omitUndefined({ expires_at }) };
  if (!refresh) return { secrets: { value }, rest: ofToken };
  const { refresh_token, token_endpoint_auth: auth, ...shown } = refresh;
  const client_secret = auth.type === "none" ? undefined : auth.client_secret;
  return {
    secrets: { value, refresh_token, ...omitUndefined({ client_secret }) },
    rest: { ...ofToken, refresh: { ...shown, token_endpoint_auth: { type: auth.type } } },
  };
}

/** Binds an encrypted secret to its place, so a copy in another user's collection cannot be read. */
export const contextOf = ({ tenant, user }: Keeper, id: string) =>
  JSON.stringify(["connections", tenant, user ?? null, id]);

export const noConnection = (id: string) => new AppError("not_found", `There is no connection \`${id}\`.`);

/**
 * How long before its expiry an access token is renewed, in milliseconds, but never before half of its lifetime has
 * passed.
 */
const AHEAD_MS = 60_000;

/** Returns the times of an access token that expires at `end`. Both arguments are in milliseconds since 1970. */
export function tokenTimes(end: number, now: number): Pick<KeptConnection, "expires_at" | "renew_at"> {
  const renewAt = Math.max(end - AHEAD_MS, now + (end - now) / 2);
  return {
    expires_at: new Date(end).toISOString(),
    renew_at: new Date(Math.min(renewAt, end)).toISOString(),
  };
}
