// Signs in at an OpenID Connect issuer with the code flow and PKCE, for a page that has no secret. The page redirects
// to the issuer and returns with a code. Only this page has the verifier that exchanges the code for tokens.

import { ConnectionLost, type SignInOptions } from "../client/client.ts";
import { t } from "./texts.ts";

export type Oidc = NonNullable<SignInOptions["oidc"]>;

export interface Tokens {
  /** The token to send to the server. */
  readonly token: string;
  readonly id_token?: string | undefined;
  readonly refresh_token?: string | undefined;
  /** The time of issue in ms since 1970, according to the browser's clock. */
  readonly since: number;
  readonly expires_at?: number | undefined;
}

/** Thrown if the issuer refuses the sign-in or cannot be reached safely. */
export class SignInRefused extends Error {
  override readonly name = "SignInRefused";
}

/** Thrown if the issuer does not respond, or cannot serve the request now. The message is for users. */
export class IssuerUnavailable extends ConnectionLost {}

/** The data that the tab stores while the user is on the issuer's page. */
export interface PendingSignIn {
  readonly oidc: Oidc;
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly redirect: string;
  /** The part of the URL after `#`, to which the page returns. */
  readonly hash: string;
  /** True if the issuer must not show a page to the user. */
  readonly isSilent: boolean;
}

const PENDING = "skein.leaving";

/** Redirects to the issuer. Throws `SignInRefused` if the browser does not allow a sign-in, as on plain http. */
export async function leaveForIssuer(oidc: Oidc, redirect: string, isSilent: boolean): Promise<void> {
  if (!globalThis.crypto.subtle) throw new SignInRefused(t().oidc.needsHttps);
  const [state, nonce, verifier] = [random(), random(), random()];
  const pending: PendingSignIn = { oidc, state, nonce, verifier, redirect, hash: location.hash, isSilent };
  sessionStorage.setItem(PENDING, JSON.stringify(pending));
  location.assign(await authorizationUrl(pending));
}

/** Returns the URL at which the issuer asks the user. */
export async function authorizationUrl({
  oidc,
  redirect,
  ...pending
}: Omit<PendingSignIn, "hash">): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(pending.verifier));
  const url = new URL(oidc.authorization_endpoint);
  const query = {
    response_type: "code",
    client_id: oidc.client_id,
    redirect_uri: redirect,
    scope: oidc.scopes,
    state: pending.state,
    nonce: pending.nonce,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: "S256",
    ...(oidc.token === "access_token" ? { audience: oidc.audience } : {}),
    ...(pending.isSilent ? { prompt: "none" } : {}),
  };
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url.href;
}

export interface IssuerResponse {
  readonly pending: PendingSignIn;
  readonly query: URLSearchParams;
}

/** Reads the issuer's response after the redirect and removes it from the URL, so no one else can read it there. */
export function takeIssuerResponse(): IssuerResponse | undefined {
  const query = new URLSearchParams(location.search);
  const kept = sessionStorage.getItem(PENDING);
  if (!query.has("state") || !kept) return undefined;
  sessionStorage.removeItem(PENDING);
  const pending = JSON.parse(kept) as PendingSignIn;
  history.replaceState(null, "", location.pathname + pending.hash);
  return { pending, query };
}

/** Exchanges the code for tokens. Throws `SignInRefused` or `IssuerUnavailable`. */
export async function tokensFor({ pending, query }: IssuerResponse): Promise<Tokens> {
  const { oidc, state, verifier, redirect, nonce } = pending;
  if (query.get("state") !== state || (query.get("iss") ?? oidc.issuer) !== oidc.issuer)
    throw new SignInRefused(t().oidc.otherAnswer);
  const code = query.get("code");
  if (!code) throw new SignInRefused(query.get("error_description") || query.get("error") || t().oidc.noCode);
  const form = { grant_type: "authorization_code", code, redirect_uri: redirect, code_verifier: verifier };
  return grant(oidc, form, nonce);
}

/** Throws the same errors as `tokensFor`. */
export const refreshed = (oidc: Oidc, refresh_token: string): Promise<Tokens> =>
  grant(oidc, { grant_type: "refresh_token", refresh_token });

interface TokenResponse {
  readonly access_token?: string;
  readonly id_token?: string;
  readonly refresh_token?: string;
  readonly expires_in?: number;
  readonly error?: string;
  readonly error_description?: string;
}

async function grant(oidc: Oidc, form: Record<string, string>, nonce?: string): Promise<Tokens> {
  const body = new URLSearchParams({ ...form, client_id: oidc.client_id });
  const response = await fetch(oidc.token_endpoint, { method: "POST", body }).catch((cause) => {
    throw new IssuerUnavailable(t().oidc.silent, { cause });
  });
  const answer = (await response.json().catch(() => ({}))) as TokenResponse;
  if (response.status >= 500) throw new IssuerUnavailable(t().oidc.answered(response.status));
  if (!response.ok)
    throw new SignInRefused(answer.error_description ?? answer.error ?? t().oidc.answered(response.status));
  if (nonce !== undefined && answer.id_token) checkIdToken(answer.id_token, oidc, nonce);
  const token = answer[oidc.token];
  if (!token) throw new SignInRefused(t().oidc.noToken(oidc.token));
  const since = Date.now();
  const seconds = lifetimeOf(token, oidc.token === "access_token" ? answer.expires_in : undefined);
  return {
    token,
    since,
    id_token: answer.id_token,
    refresh_token: answer.refresh_token ?? form.refresh_token,
    expires_at: seconds === undefined ? undefined : since + seconds * 1000,
  };
}

/** The token comes directly from the issuer over TLS, so its signature does not need to be checked. */
function checkIdToken(token: string, { issuer, client_id }: Oidc, nonce: string): void {
  const { iss, aud, nonce: given } = claimsOf(token);
  if (iss === issuer && [aud].flat().includes(client_id) && given === nonce) return;
  throw new SignInRefused(t().oidc.otherToken);
}

/** Compares the two times in the token, because the browser's clock may be wrong. */
function lifetimeOf(token: string, expires_in: number | undefined): number | undefined {
  if (expires_in !== undefined) return expires_in;
  const { exp, iat } = claimsOf(token);
  return typeof exp === "number" && typeof iat === "number" ? exp - iat : undefined;
}

/** Returns the unverified claims of a JWT, or an empty object for an invalid token. */
function claimsOf(token: string): Readonly<Record<string, unknown>> {
  try {
    const [, payload = ""] = token.split(".");
    const bytes = Uint8Array.from(atob(payload.replaceAll("-", "+").replaceAll("_", "/")), (char) =>
      char.charCodeAt(0),
    );
    return Object(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    return {};
  }
}

const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

const base64url = (bytes: Uint8Array) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
