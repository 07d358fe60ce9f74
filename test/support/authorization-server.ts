// A real authorization server (the package `oidc-provider`) whose user always agrees: authorization codes with PKCE, resource
// indicators, registration of clients, refresh tokens that work once, and revocation.

import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Provider } from "oidc-provider";
import { onTestFinished } from "vitest";

export interface AuthorizationServer {
  readonly url: string;
  /** Tokens of a grant that the user has just agreed to. */
  grant(): Promise<Tokens>;
  /** Each request to the token endpoint, in order, with its answer. */
  readonly tokenRequests: { readonly grant_type: string | null; status: number }[];
  /** Whether the server still accepts an access token. */
  isActive(accessToken: string): Promise<boolean>;
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
  };
}

export interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly expires_in: number;
}

export const CLIENT = { client_id: "skein-test", client_secret: "a/secret:of the client" };
const REDIRECT = "https://client.example.com/callback";
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
  const state: AuthorizationServer["state"] = { lifetime: 600, agrees: true, pause: Promise.resolve() };
  const provider = providerAt(url, resource, state);
  const tokenRequests: AuthorizationServer["tokenRequests"] = [];
  const handle = provider.callback();
  server.on("request", (request, response) => {
    const { pathname } = new URL(request.url ?? "/", url);
    if (pathname.startsWith("/interaction/")) void answerInteraction(provider, state, request, response);
    else if (pathname === "/token") void answerToken(request, response);
    else void handle(request, response);
  });

  async function answerToken(request: IncomingMessage, response: ServerResponse) {
    let body = "";
    for await (const piece of request) body += String(piece);
    const seen = { grant_type: new URLSearchParams(body).get("grant_type"), status: 0 };
    tokenRequests.push(seen);
    await state.pause;
    response.once("finish", () => (seen.status = response.statusCode));
    if (state.failsWith !== undefined) return void response.writeHead(state.failsWith).end("down");
    // The package takes a body that was read already.
    await handle(Object.assign(request, { body }), response);
  }

  return {
    ...{ url, state, tokenRequests },
    grant: () => grantAt(url, resource),
    async isActive(accessToken) {
      return (await provider.AccessToken.find(accessToken)) !== undefined;
    },
  };
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
    scopes: ["openid", "offline_access", "calendar"],
    ttl: { AccessToken: () => state.lifetime },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        getResourceServerInfo: (_, asked) => ({
          scope: "calendar",
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
  { agrees }: AuthorizationServer["state"],
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
    await provider.interactionFinished(request, response, { login: { accountId: "ada" } });
    return;
  }
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: "ada", clientId: String(params.client_id) });
  if (!grant) throw new Error("There is no grant.");
  grant.addOIDCScope("openid offline_access calendar");
  const { missingResourceScopes = {} } = prompt.details as {
    missingResourceScopes?: Record<string, string[]>;
  };
  for (const [resource, scopes] of Object.entries(missingResourceScopes))
    grant.addResourceScope(resource, scopes.join(" "));
  await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
}

/** Follows redirects with cookies, as a browser does, until one leads to `stopAt`. Returns that address. */
export async function browse(address: string, stopAt: string): Promise<URL> {
  const cookies = new Map<string, string>();
  for (let at = new URL(address); ; ) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await fetch(at, { redirect: "manual", headers: { cookie } });
    for (const line of answer.headers.getSetCookie()) {
      const [name = "", value = ""] = (line.split(";")[0] ?? "").split(/=(.*)/s);
      cookies.set(name, value);
    }
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
