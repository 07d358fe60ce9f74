// A small issuer of tokens for people: OpenID Connect, the code flow with PKCE, for one client without a secret. Strict: what
// a real one refuses, this one refuses.

import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { onTestFinished } from "vitest";

export const CLIENT_ID = "skein-page";
const AUDIENCE = "skein";
const { publicKey, privateKey } = await generateKeyPair("RS256");
const JWK = { ...(await exportJWK(publicKey)), kid: "one", use: "sig", alg: "RS256" };

export interface OidcIssuer {
  readonly url: string;
  /** For `auth` of a server that believes it. */
  readonly auth: { scheme: "jwt"; jwt: object; oidc: object };
  /** To be changed by a test. */
  readonly state: {
    /** Of access tokens, in s. */
    lifetime: number;
    givesRefreshTokens: boolean;
    /** What `/.well-known/openid-configuration` says instead. */
    configuration?: { status: number; body: object };
    /** Whether the browser has been signed in and out. */
    isSignedIn: boolean;
    /** How often the page was sent here to ask silently. */
    silentVisits: number;
    /** Silent visits are answered after it. */
    answersAfter: Promise<void>;
    /** Each grant that was given, in order. */
    readonly grants: string[];
    /** Why requests were refused. */
    readonly faults: string[];
  };
}

interface Code {
  readonly redirect: string;
  readonly challenge: string;
  readonly nonce: string | null;
}

/** Runs until the test has finished. */
export async function startOidcIssuer(): Promise<OidcIssuer> {
  const state: OidcIssuer["state"] = {
    ...{ lifetime: 300, givesRefreshTokens: true, isSignedIn: false, grants: [], faults: [] },
    ...{ silentVisits: 0, answersAfter: Promise.resolve() },
  };
  const codes = new Map<string, Code>();
  const refreshTokens = new Set<string>();

  const server = createServer((request, response) => {
    answer(request, response).catch((error) => {
      state.faults.push(String(error.message));
      json(response, 400, { error: "invalid_request", error_description: String(error.message) });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "", url);
    if (pathname === "/.well-known/openid-configuration") {
      const { status, body } = state.configuration ?? { status: 200, body: configuration() };
      return json(response, status, body);
    }
    if (pathname === "/keys") return json(response, 200, { keys: [JWK] });
    if (pathname === "/authorize") return authorize(searchParams, response);
    if (pathname === "/token") return grant(await formOf(request), response);
    if (pathname === "/logout") {
      state.isSignedIn = false;
      return redirect(response, needed(searchParams, "post_logout_redirect_uri"));
    }
    throw new Error(`There is no ${pathname}.`);
  }

  const configuration = () => ({
    issuer: url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    end_session_endpoint: `${url}/logout`,
    jwks_uri: `${url}/keys`,
  });

  /** Asks who is not signed in, on a page with a link; with `prompt=none` it asks no one. */
  async function authorize(query: URLSearchParams, response: ServerResponse): Promise<void> {
    const back = new URL(needed(query, "redirect_uri"));
    assert(query.get("client_id") === CLIENT_ID, "an unknown client");
    assert(query.get("response_type") === "code", "not the code flow");
    assert(query.get("code_challenge_method") === "S256", "no PKCE");
    assert(needed(query, "scope").split(" ").includes("openid"), "not OpenID");
    back.searchParams.set("state", needed(query, "state"));
    back.searchParams.set("iss", url);
    if (query.has("login")) state.isSignedIn = true;
    if (query.get("prompt") === "none") {
      state.silentVisits++;
      await state.answersAfter;
    }
    if (!state.isSignedIn && query.get("prompt") !== "none") {
      const link = `/authorize?${query}&login=ada`.replaceAll("&", "&amp;");
      response.setHeader("content-type", "text/html");
      return void response.end(
        `<!doctype html><title>Log in</title><link rel="icon" href="data:,"><a href="${link}">Log in as Ada</a>`,
      );
    }
    if (!state.isSignedIn) back.searchParams.set("error", "login_required");
    else {
      const code = randomUUID();
      const { challenge, nonce } = { challenge: needed(query, "code_challenge"), nonce: query.get("nonce") };
      codes.set(code, { redirect: needed(query, "redirect_uri"), challenge, nonce });
      back.searchParams.set("code", code);
    }
    redirect(response, back.href);
  }

  async function grant(form: URLSearchParams, response: ServerResponse): Promise<void> {
    response.setHeader("access-control-allow-origin", "*");
    assert(form.get("client_id") === CLIENT_ID, "an unknown client");
    const type = needed(form, "grant_type");
    let nonce: string | null = null;
    if (type === "authorization_code") {
      const code = codes.get(needed(form, "code"));
      codes.delete(needed(form, "code"));
      assert(code, "an unknown code");
      assert(code.redirect === form.get("redirect_uri"), "another redirect address");
      const challenge = createHash("sha256").update(needed(form, "code_verifier")).digest("base64url");
      assert(code.challenge === challenge, "the wrong verifier");
      nonce = code.nonce;
    } else {
      assert(type === "refresh_token", "an unknown grant");
      assert(refreshTokens.delete(needed(form, "refresh_token")), "an unknown refresh token");
    }
    state.grants.push(type);
    const refresh_token = randomUUID();
    if (state.givesRefreshTokens) refreshTokens.add(refresh_token);
    json(response, 200, {
      token_type: "Bearer",
      expires_in: state.lifetime,
      access_token: await signed({ aud: AUDIENCE, tenant: "acme", scope: "read run" }),
      id_token: await signed({
        aud: CLIENT_ID,
        tenant: "acme",
        scope: "read run",
        ...(nonce ? { nonce } : {}),
      }),
      ...(state.givesRefreshTokens ? { refresh_token } : {}),
    });
  }

  const signed = (claims: JWTPayload) =>
    new SignJWT({ iss: url, sub: "ada", jti: randomUUID(), ...claims })
      .setProtectedHeader({ alg: "RS256", kid: "one" })
      .setIssuedAt()
      .setExpirationTime(Math.floor(Date.now() / 1000) + state.lifetime)
      .sign(privateKey);

  const jwt = { jwks_url: `${url}/keys`, issuer: url, audience: AUDIENCE, clock_tolerance: 1 };
  return { url, state, auth: { scheme: "jwt", jwt, oidc: { client_id: CLIENT_ID } } };
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function redirect(response: ServerResponse, location: string): void {
  response.writeHead(302, { location }).end();
}

async function formOf(request: IncomingMessage): Promise<URLSearchParams> {
  let text = "";
  for await (const chunk of request) text += chunk;
  return new URLSearchParams(text);
}

function needed(query: URLSearchParams, name: string): string {
  const value = query.get(name);
  if (value) return value;
  throw new Error(`\`${name}\` is missing.`);
}

function assert(condition: unknown, fault: string): asserts condition {
  if (!condition) throw new Error(`Refused: ${fault}.`);
}
