// The page's user: the client with this tab's credentials, the permitted actions, and whether the server responds.

import {
  type ClientOptions,
  ConnectionLost,
  createClient,
  type Me,
  ProblemError,
  type SignInOptions,
} from "../client/client.ts";
import {
  credentials,
  forgetAll,
  headers,
  keepCredentials,
  pageUrl,
  replaceCredentials,
  takeOver,
} from "./credentials.ts";
import { forgetDrafts } from "./drafts.ts";
import { errorText } from "./error-text.ts";
import { touch } from "./frame.ts";
import { forgetAllGiven } from "./given.ts";
import { followTabs, takeHandedOver, tellSignedIn, tellSignedOut } from "./handing-over.ts";
import { countIn } from "./numbers.ts";
import {
  type IssuerResponse,
  IssuerUnavailable,
  leaveForIssuer,
  type Oidc,
  SignInRefused,
  tokensFor,
} from "./oidc.ts";
import { t } from "./texts.ts";

export interface Session {
  /** `asking` until the server has identified the user, and `signed_out` after a 401. */
  state: "asking" | "signed_in" | "signed_out" | "unreachable";
  me?: Me;
  /** How users sign in. Set once the page is signed out and the server has responded. */
  options?: SignInOptions | undefined;
  /** Why the page is not signed in. */
  problem?: string | undefined;
  /** The connection state of the stream that this tab follows. */
  connection: "idle" | "live" | "reconnecting";
}

export const session: Session = { state: "asking", connection: "idle" };

/** The base URL of the page. The server may be behind a path prefix. */
export const baseUrl = new URL(".", location.href.split(/[?#]/)[0]).href.replace(/\/$/, "");

/** Creates a separate client, for callers that need the connection state of their own requests. */
export const clientWith = (options: Pick<ClientOptions, "onConnection"> = {}) =>
  createClient({ ...options, baseUrl, headers, fetch: watched });

export const client = clientWith();

/** After a 401, gets new tokens or signs out. */
async function watched(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(input, init);
  if (response.status !== 401 || session.state !== "signed_in") return response;
  try {
    await replaceCredentials();
  } catch (error) {
    if (!(error instanceof SignInRefused)) throw error;
    const problem = await response
      .clone()
      .json()
      .catch(() => ({}));
    void refuse(errorText({ code: problem.code, message: problem.detail ?? error.message }));
    return response;
  }
  const again = new Headers(init.headers);
  for (const [name, value] of Object.entries(await headers())) again.set(name, value);
  return fetch(input, { ...init, headers: again });
}

/** Identifies the user. If the issuer has redirected back to the page, uses its response. */
export async function begin(response: IssuerResponse | undefined): Promise<void> {
  followTabs(() => session.state === "signed_out" && void askMe());
  if (!response) return askMe();
  try {
    const tokens = await tokensFor(response);
    keepCredentials({ ...tokens, oidc: response.pending.oidc });
  } catch (error) {
    keepCredentials(undefined);
    return refuse(response.pending.isSilent ? t().door.hasEnded : messageOf(error));
  }
  return askMe();
}

/** Signs in with a key or a token. */
export function signIn(token: string): Promise<void> {
  keepCredentials({ token });
  return askMe();
}

/** Redirects to the issuer. Throws `SignInRefused`. */
export const signInAt = (oidc: Oidc): Promise<void> => leaveForIssuer(oidc, pageUrl(), false);

/** Asks the server who the user is, and redraws the views. */
export async function askMe(): Promise<void> {
  try {
    const me = await client.me();
    // The data on the page belongs to another user.
    if (takeOver(`${me.tenant} ${me.user}`) && session.me) return location.reload();
    session.me = me;
    countIn(me.currency);
    session.state = "signed_in";
    session.problem = undefined;
    tellSignedIn();
  } catch (error) {
    const isRefused =
      error instanceof SignInRefused || (error instanceof ProblemError && error.status === 401);
    const wasGiven = credentials() !== undefined;
    if (isRefused && !wasGiven && (await takeHandedOver())) return askMe();
    if (isRefused) return refuse(wasGiven ? messageOf(error) : undefined);
    session.state = "unreachable";
    session.problem = messageOf(error);
  }
  touch(session);
}

async function refuse(problem: string | undefined): Promise<void> {
  keepCredentials(undefined);
  Object.assign(session, { state: "signed_out", problem });
  touch(session);
  try {
    session.options ??= await client.signInOptions();
  } catch (error) {
    session.problem = messageOf(error);
    if (error instanceof ConnectionLost) session.state = "unreachable";
  }
  touch(session);
}

/**
 * Deletes the tab's credentials and the user's drafts. Also ends the session at the issuer, if the issuer supports
 * that.
 */
export async function signOut(): Promise<void> {
  const given = credentials();
  await forgetDrafts();
  forgetAllGiven();
  forgetAll();
  tellSignedOut();
  if (given && "oidc" in given && given.oidc.end_session_endpoint) {
    const url = new URL(given.oidc.end_session_endpoint);
    url.searchParams.set("client_id", given.oidc.client_id);
    url.searchParams.set("post_logout_redirect_uri", pageUrl());
    if (given.id_token) url.searchParams.set("id_token_hint", given.id_token);
    location.assign(url);
  } else location.reload();
}

/** Returns whether the user has the scope. The page hides controls that require a missing scope. */
export const may = (scope: Me["scopes"][number]): boolean => session.me?.scopes.includes(scope) ?? false;

/** Returns an error message for people, because a browser's own messages about lost connections are too technical. */
export function messageOf(error: unknown): string {
  if (error instanceof IssuerUnavailable) return error.message;
  if (error instanceof ConnectionLost) return t().connection.lost;
  if (error instanceof ProblemError) return errorText(error);
  return error instanceof Error ? error.message : String(error);
}
