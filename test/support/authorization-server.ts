// A real authorization server (the package `oidc-provider`) whose user always agrees: authorization codes with PKCE, resource
// indicators, registration of clients, refresh tokens that work once, and revocation.

import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Adapter, Provider } from "oidc-provider";
import { onTestFinished } from "vitest";

export interface AuthorizationServer {
  readonly url: string;
  /** Tokens of a grant that the user has just agreed to. */
  grant(): Promise<Tokens>;
  /** Each request to the token endpoint, in order, with its answer. */
  readonly tokenRequests: { readonly grant_type: string | null; status: number }[];
  /** Whether the server still accepts an access token. */
  isActive(accessToken: string): Promise<boolean>;
  /** Who agreed to it, what it may be used for and where; undefined if the server does not accept it. */
  tokenInfo(accessToken: string): Promise<TokenInfo | undefined>;
  /** Each client that has registered. */
  readonly registrations: string[];
  /** Forgets each client that has registered. */
  forgetClients(): Promise<void>;
  /** Each grant whose tokens were revoked. */
  readonly revocations: string[];
  /** To be changed by a test. */
  readonly state: {
    /** Lifetime of access tokens, in seconds. */
    lifetime: number;
    /** Whether the user agrees. */
    agrees: boolean;
    /** Waited for before the token endpoint answers. */
    pause: Promise<void>;
    /** Status with which it refuses every request to the token endpoint. */
    failsWith?: number | undefined;
    /** The user who agrees. */
    account: string;
    /** What becomes of its description of itself. */
    metadata: (own: Record<string, unknown>) => object;
    /** The only path of that description, if not at the usual ones. */
    place?: string;
    /** Status with which it refuses registrations. */
    refusesClients?: number | undefined;
    /** Called for each request to revoke a token. Returns the status with which it is refused, if any. */
    revokes: (token: string) => Promise<number | undefined>;
  };
}

export interface TokenInfo {
  readonly account: string;
  readonly client: string;
  readonly scopes: readonly string[];
  readonly audience: string;
}

export interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly expires_in: number;
}

export const CLIENT = { client_id: "skein-test", client_secret: "a/secret:of the client" };
const REDIRECT = "https://client.example.com/callback";
const WELL_KNOWN = new Set(["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"]);
/** What its tokens are for. */
export const RESOURCE = "https://mcp.example.com/mcp";

/** `resource`: the MCP server that its tokens are for. Closed when the test has finished. */
export async function authorizationServer(resource = RESOURCE): Promise<AuthorizationServer> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const state: AuthorizationServer["state"] = {
    ...{ lifetime: 600, agrees: true, pause: Promise.resolve(), account: "ada" },
    metadata: (own) => own,
    revokes: async () => undefined,
  };
  const [registrations, revocations]: [string[], string[]] = [[], []];
  const provider = providerAt(url, resource, state);
  const tokenRequests: AuthorizationServer["tokenRequests"] = [];
  const handle = provider.callback();
  server.on("request", (request, response) => {
    const { pathname } = new URL(request.url ?? "/", url);
    if (pathname.startsWith("/interaction/")) void answerInteraction(provider, state, request, response);
    else if (pathname === "/token") void answerToken(request, response);
    else if (pathname === "/token/revocation") void answerRevocation(request, response);
    else if (pathname === state.place || (!state.place && WELL_KNOWN.has(pathname)))
      void answerMetadata(request, response);
    else if (pathname === "/reg" && state.refusesClients !== undefined)
      response.writeHead(state.refusesClients, { "content-type": "application/json" }).end("{}");
    else void handle(request, response);
  });
  provider.on("registration_create.success", (_, { clientId }) => void registrations.push(clientId));
  provider.on("grant.revoked", (_, grantId) => void revocations.push(grantId));

  /** What the package says, as a test changes it. */
  async function answerMetadata(request: IncomingMessage, response: ServerResponse) {
    if (request.headers["x-unchanged"]) return void handle(request, response);
    const own = await fetch(`${url}/.well-known/openid-configuration`, { headers: { "x-unchanged": "1" } });
    const body = JSON.stringify(state.metadata((await own.json()) as Record<string, unknown>));
    response.writeHead(200, { "content-type": "application/json" }).end(body);
  }

  async function answerRevocation(request: IncomingMessage, response: ServerResponse) {
    const body = await bodyOf(request);
    const status = await state.revokes(new URLSearchParams(body).get("token") ?? "");
    if (status !== undefined) return void response.writeHead(status).end("down");
    // The client may have left.
    if (!request.destroyed || request.complete) await handle(Object.assign(request, { body }), response);
  }

  async function answerToken(request: IncomingMessage, response: ServerResponse) {
    const body = await bodyOf(request);
    const seen = { grant_type: new URLSearchParams(body).get("grant_type"), status: 0 };
    tokenRequests.push(seen);
    await state.pause;
    response.once("finish", () => (seen.status = response.statusCode));
    if (state.failsWith !== undefined) return void response.writeHead(state.failsWith).end("down");
    // The package takes a body that was read already.
    await handle(Object.assign(request, { body }), response);
  }

  return {
    ...{ url, state, tokenRequests, registrations, revocations },
    grant: () => grantAt(url, resource),
    async forgetClients() {
      // The types of the package leave it out.
      const { adapter } = provider.Client as unknown as { readonly adapter: Adapter };
      for (const client of registrations) await adapter.destroy(client);
    },
    async isActive(accessToken) {
      return (await provider.AccessToken.find(accessToken)) !== undefined;
    },
    async tokenInfo(accessToken) {
      const found = await provider.AccessToken.find(accessToken);
      if (!found) return undefined;
      const { accountId: account, clientId: client = "", scope = "", aud } = found;
      return { account, client, scopes: scope.split(" "), audience: String(aud) };
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const piece of request) body += String(piece);
  return body;
}

function providerAt(url: string, resource: string, state: AuthorizationServer["state"]): Provider {
  return new Provider(url, {
    clients: [
      {
        ...CLIENT,
        redirect_uris: [REDIRECT],
        grant_types: ["authorization_code", "refresh_token"],
        token_endpoint_auth_method: "client_secret_basic",
      },
    ],
    cookies: { keys: [randomBytes(16).toString("hex")] },
    findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    rotateRefreshToken: true,
    issueRefreshToken: async () => true,
    pkce: { required: () => true },
    scopes: ["openid", "offline_access", "calendar", "calendar.write"],
    ttl: { AccessToken: () => state.lifetime },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        getResourceServerInfo: (_, asked) => ({
          scope: "calendar calendar.write",
          audience: asked,
          accessTokenTTL: state.lifetime,
        }),
        useGrantedResource: () => true,
      },
    },
  });
}

/** Signs the user in and agrees, or refuses. */
async function answerInteraction(
  provider: Provider,
  { agrees, account: accountId }: AuthorizationServer["state"],
  request: IncomingMessage,
  response: ServerResponse,
) {
  const { params, prompt, grantId } = await provider.interactionDetails(request, response);
  if (!agrees) {
    await provider.interactionFinished(request, response, {
      error: "access_denied",
      error_description: "The user refused.",
    });
    return;
  }
  if (prompt.name === "login") {
    await provider.interactionFinished(request, response, { login: { accountId } });
    return;
  }
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId, clientId: String(params.client_id) });
  if (!grant) throw new Error("There is no grant.");
  grant.addOIDCScope("openid offline_access calendar calendar.write");
  const { missingResourceScopes = {} } = prompt.details as {
    missingResourceScopes?: Record<string, string[]>;
  };
  for (const [resource, scopes] of Object.entries(missingResourceScopes))
    grant.addResourceScope(resource, scopes.join(" "));
  await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
}

/** A browser of a person. */
export interface Browser {
  /** By origin. */
  readonly cookies: Map<string, Map<string, string>>;
  /** The server behind a public address. */
  readonly servers: Map<string, string>;
  /** Sent with each request to Skein. */
  headers?: Record<string, string>;
}

export const newBrowser = (): Browser => ({ cookies: new Map(), servers: new Map() });

/** Requests an address with the cookies of its origin, and keeps those of the answer. */
export async function visit({ cookies, servers, headers }: Browser, at: URL): Promise<Response> {
  const own = cookies.get(at.origin) ?? new Map<string, string>();
  cookies.set(at.origin, own);
  const cookie = [...own].map(([name, value]) => `${name}=${value}`).join("; ");
  const server = servers.get(at.origin);
  const url = server === undefined ? at : new URL(at.pathname + at.search, server);
  const answer = await fetch(url, { redirect: "manual", headers: { cookie, ...headers } });
  for (const line of answer.headers.getSetCookie()) {
    const [name = "", value = ""] = (line.split(";")[0] ?? "").split(/=(.*)/s);
    own.set(name, value);
  }
  return answer;
}

/** Follows redirects with cookies, as a browser does, until one leads to `stopAt`. Returns that address. */
export async function browse(address: string, stopAt: string, browser = newBrowser()): Promise<URL> {
  for (let at = new URL(address); ; ) {
    const answer = await visit(browser, at);
    const next = answer.headers.get("location");
    if (!next) throw new Error(`${at.pathname} answered ${answer.status}: ${await answer.text()}`);
    at = new URL(next, at);
    if (at.href.startsWith(stopAt)) return at;
  }
}

async function grantAt(url: string, resource: string): Promise<Tokens> {
  const verifier = randomBytes(32).toString("base64url");
  const challenge = createHash("sha256").update(verifier).digest("base64url");
  const query = new URLSearchParams({
    ...{ client_id: CLIENT.client_id, redirect_uri: REDIRECT, response_type: "code", resource },
    ...{ scope: "openid offline_access calendar", prompt: "consent" },
    ...{ code_challenge: challenge, code_challenge_method: "S256" },
  });
  const back = await browse(`${url}/auth?${query}`, REDIRECT);
  const code = back.searchParams.get("code");
  if (!code) throw new Error(`There is no code: ${back.search}`);
  const basic = [CLIENT.client_id, CLIENT.client_secret].map(encodeURIComponent).join(":");
  const answer = await fetch(`${url}/token`, {
    method: "POST",
    headers: { authorization: `Basic ${Buffer.from(basic).toString("base64")}` },
    body: new URLSearchParams({
      ...{
        grant_type: "authorization_code",
        code,
        redirect_uri: REDIRECT,
        code_verifier: verifier,
        resource,
      },
    }),
  });
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as Tokens;
}
