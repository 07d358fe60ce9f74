// Finds out where a user of an MCP server signs in. The server names its authorization server (RFC 9728), which
// describes itself (RFC 8414 or OpenID Connect Discovery).

import { z } from "zod";
import { AppError } from "../../../agent/core/errors.ts";
import { isLoopback } from "../../../lib/hosts.ts";
import { HttpUrl } from "../../../lib/http-url.ts";
import { type FlowRequests, jsonAt, reasonOf } from "./requests.ts";

/** An MCP server whose accounts are connected through OAuth. */
export interface AccountServer {
  readonly name: string;
  readonly url: string;
  readonly per: "user" | "tenant";
  readonly headers: Readonly<Record<string, string>>;
  readonly oauth: {
    readonly scopes: readonly string[];
    /** If set, no other authorization server is used. */
    readonly issuer?: string | undefined;
    readonly client_id?: string | undefined;
    readonly client_secret?: string | undefined;
  };
}

const Resource = z.object({
  resource: HttpUrl,
  authorization_servers: z.array(HttpUrl).min(1),
  scopes_supported: z.array(z.string()).optional().catch(undefined),
});
type Resource = z.output<typeof Resource>;

const Issuer = z.object({
  issuer: HttpUrl,
  authorization_endpoint: HttpUrl,
  token_endpoint: HttpUrl,
  registration_endpoint: HttpUrl.optional(),
  revocation_endpoint: HttpUrl.optional().catch(undefined),
  code_challenge_methods_supported: z.array(z.string()).default([]),
  token_endpoint_auth_methods_supported: z.array(z.string()).default(["client_secret_basic"]),
  scopes_supported: z.array(z.string()).default([]),
  client_id_metadata_document_supported: z.boolean().default(false),
  authorization_response_iss_parameter_supported: z.boolean().default(false),
});
/** The metadata that an authorization server publishes. */
export type IssuerMetadata = z.output<typeof Issuer>;

export interface DiscoveryResult {
  readonly issuer: IssuerMetadata;
  /** The `resource` parameter of token requests (RFC 8707). */
  readonly resource: string;
  /** The scopes that the MCP server requires. */
  readonly scopes: readonly string[];
}

/** Throws `unavailable` with a sentence that describes the problem, or the reason of a signal. */
export async function discover(server: AccountServer, requests: FlowRequests): Promise<DiscoveryResult> {
  const challenge = await challengeOf(server, requests);
  const resource = await resourceOf(server, challenge.resource_metadata, requests);
  const named = resource?.authorization_servers ?? [new URL(server.url).origin];
  const { issuer: wanted } = server.oauth;
  const chosen = wanted === undefined ? named[0] : named.find((each) => isSameIssuer(each, wanted));
  if (chosen === undefined)
    throw failed(server, "it does not name the authorization server of `auth.oauth.issuer` in agents.yaml");
  const issuer = await issuerAt(server, chosen, requests);
  const scopes = challenge.scope?.split(" ") ?? resource?.scopes_supported ?? [];
  return { issuer, resource: resource?.resource ?? canonical(server.url), scopes };
}

/**
 * Returns the parameters of the `WWW-Authenticate` header that the server sends when it refuses a request without a
 * token.
 */
async function challengeOf(server: AccountServer, requests: FlowRequests) {
  const headers = withoutAuthorization(server.headers);
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
  const answer = await tried(server, "the MCP server could not be reached", () =>
    requests.send(server.url, {
      method: "POST",
      body,
      headers: {
        ...headers,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      },
    }),
  );
  return challengeIn(answer.status === 401 ? answer.headers["www-authenticate"] : undefined);
}

export interface Challenge {
  readonly resource_metadata?: string | undefined;
  readonly scope?: string | undefined;
}

/** Parses the parameters of a `Bearer` challenge. */
export function challengeIn(header = ""): Challenge {
  if (!/(?:^|,)\s*bearer\b/i.test(header)) return {};
  const param = (name: string) => {
    const found = new RegExp(`(?:^|[\\s,])${name}\\s*=\\s*(?:"([^"]{1,2048})"|([^\\s,"]{1,2048}))`, "i").exec(
      header,
    );
    return found?.[1] ?? found?.[2];
  };
  return { resource_metadata: param("resource_metadata"), scope: param("scope") };
}

/** Returns undefined if the server has no such document, which was added in the MCP revision of 2025-06-18. */
async function resourceOf(
  server: AccountServer,
  announced: string | undefined,
  requests: FlowRequests,
): Promise<Resource | undefined> {
  const { origin, pathname } = new URL(server.url);
  const path = pathname.replace(/\/+$/, "");
  const wellKnown = `${origin}/.well-known/oauth-protected-resource`;
  const places = announced === undefined ? [...new Set([wellKnown + path, wellKnown])] : [announced];
  for (const place of places) assertHttps(server, place, "the address of its protected resource metadata");
  for (const place of places) {
    const json = await tried(server, "its protected resource metadata could not be read", () =>
      jsonAt(requests, place),
    );
    if (json === undefined) continue;
    const { success, data } = Resource.safeParse(json);
    if (!success) throw failed(server, "its protected resource metadata does not follow RFC 9728");
    if (!covers(data.resource, server.url))
      throw failed(server, "its protected resource metadata belongs to another resource");
    return data;
  }
  if (announced !== undefined) throw failed(server, "its protected resource metadata is missing");
  return undefined;
}

/** Returns true if the resource is the server itself or a path above it. */
function covers(resource: string, server: string): boolean {
  const [outer, inner] = [new URL(resource), new URL(server)];
  const above = outer.pathname.replace(/\/*$/, "/");
  return outer.origin === inner.origin && `${inner.pathname.replace(/\/*$/, "")}/`.startsWith(above);
}

const canonical = (address: string) => {
  const url = new URL(address);
  url.hash = "";
  return url.href.replace(/\/$/, "");
};

async function issuerAt(
  server: AccountServer,
  issuer: string,
  requests: FlowRequests,
): Promise<IssuerMetadata> {
  assertHttps(server, issuer, "the address of its authorization server");
  for (const place of metadataPlaces(issuer)) {
    const json = await tried(server, "its authorization server could not be reached", () =>
      jsonAt(requests, place),
    );
    if (json === undefined) continue;
    const { success, data } = Issuer.safeParse(json);
    if (!success) throw failed(server, "its authorization server's metadata does not follow RFC 8414");
    if (!isSameIssuer(data.issuer, issuer))
      throw failed(server, "its authorization server's metadata names another issuer");
    assertUsable(server, data);
    return data;
  }
  throw failed(server, "its authorization server does not describe itself (RFC 8414)");
}

export function metadataPlaces(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/+$/, "");
  const [oauth, openid] = ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];
  if (path === "") return [origin + oauth, origin + openid];
  return [origin + oauth + path, origin + openid + path, origin + path + openid];
}

/** An origin may be written with or without a trailing slash. */
const isSameIssuer = (one: string, other: string) => withoutSlash(one) === withoutSlash(other);
const withoutSlash = (issuer: string) =>
  new URL(issuer).pathname === "/" && new URL(issuer).search === "" ? new URL(issuer).origin : issuer;

function assertUsable(server: AccountServer, issuer: IssuerMetadata): void {
  if (!issuer.code_challenge_methods_supported.includes("S256"))
    throw failed(server, "its authorization server does not support PKCE with S256");
  const { authorization_endpoint, token_endpoint, registration_endpoint, revocation_endpoint } = issuer;
  const addresses = [authorization_endpoint, token_endpoint, registration_endpoint, revocation_endpoint];
  if (addresses.some((address) => address !== undefined && !isEncrypted(new URL(address))))
    throw failed(server, "its authorization server has URLs without TLS");
}

/** Without TLS, an attacker between the servers could name another authorization server. The MCP server's own address is the operator's choice. */
function assertHttps(server: AccountServer, address: string, what: string): void {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url && (isEncrypted(url) || url.origin === new URL(server.url).origin)) return;
  throw failed(server, `${what} must begin with https://`);
}

/** A request to a loopback address does not leave this machine. */
const isEncrypted = (url: URL) =>
  url.protocol === "https:" || isLoopback(url.hostname.replace(/^\[|\]$/g, ""));

const withoutAuthorization = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase() !== "authorization"));

async function tried<T>(server: AccountServer, what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw failed(server, `${what}: ${reasonOf(error)}`, error);
  }
}

/** `why` completes "Accounts at … cannot be connected now, because …". */
export const failed = ({ name }: Pick<AccountServer, "name">, why: string, cause?: unknown) =>
  new AppError("unavailable", `Accounts at \`${name}\` cannot be connected now: ${why}.`, { cause });
