// Who uses the page: the client with the credentials of this tab, what they allow, and whether the server answers.

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
import { leaveForIssuer, type Oidc, type Returned, SignInRefused, tokensFor } from "./oidc.ts";
import { t } from "./texts.ts";

export interface Session {
  /** `asking` until the server has said who this is; `signed_out` after a 401. */
  state: "asking" | "signed_in" | "signed_out" | "unreachable";
  me?: Me;
  /** How people sign in; known when the page is signed out and the server says it. */
  options?: SignInOptions | undefined;
  /** Why the page is not signed in. */
  problem?: string | undefined;
  /** Of the stream that this tab follows. */
  connection: "idle" | "live" | "reconnecting";
}

export const session: Session = { state: "asking", connection: "idle" };

/** Where the page lies: the server may be behind a path prefix. */
export const baseUrl = new URL(".", location.href.split(/[?#]/)[0]).href.replace(/\/$/, "");

/** A client of its own, for what wants to know about its connection alone. */
export const clientWith = (options: Pick<ClientOptions, "onConnection"> = {}) =>
  createClient({ ...options, baseUrl, headers, fetch: watched });

export const client = clientWith();

/** A 401 means new tokens, or that the page is signed out. */
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

/** Finds out who this is; with what the issuer has told the page, if it comes from there. */
export async function begin(returned: Returned | undefined): Promise<void> {
  followTabs(() => session.state === "signed_out" && void askMe());
  if (!returned) return askMe();
  try {
    const tokens = await tokensFor(returned);
    keepCredentials({ ...tokens, oidc: returned.leaving.oidc });
  } catch (error) {
    keepCredentials(undefined);
    return refuse(returned.leaving.isSilent ? t().door.hasEnded : messageOf(error));
  }
  return askMe();
}

/** With a key or a token. */
export function signIn(token: string): Promise<void> {
  keepCredentials({ token });
  return askMe();
}

/** Leaves the page. Throws `SignInRefused`. */
export const signInAt = (oidc: Oidc): Promise<void> => leaveForIssuer(oidc, pageUrl(), false);

/** Asks the server who this is. The views draw again when it is known. */
export async function askMe(): Promise<void> {
  try {
    const me = await client.me();
    // What the page has read so far is another user's.
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

/** Forgets the credentials of the tab and the person's drafts, and ends the session at the issuer if it lets the page do so. */
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

/** Whether this user may do what needs the scope: without it the page has no control for it. */
export const may = (scope: Me["scopes"][number]): boolean => session.me?.scopes.includes(scope) ?? false;

/** An error as a person reads it: what browsers say of a lost connection is for machines. */
export function messageOf(error: unknown): string {
  if (error instanceof ConnectionLost) return t().connection.lost;
  if (error instanceof ProblemError) return errorText(error);
  return error instanceof Error ? error.message : String(error);
}
