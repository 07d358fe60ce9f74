// The credentials of this tab. The browser deletes them when the tab is closed, and scripts on other pages cannot read
// them. `handing-over.ts` passes them to other tabs of the page.

import {
  IssuerUnavailable,
  leaveForIssuer,
  type Oidc,
  refreshed,
  SignInRefused,
  type Tokens,
} from "./oidc.ts";
import { t } from "./texts.ts";

/** A key or token that the user entered, or the tokens from an issuer. */
export type Credentials = { readonly token: string } | (Tokens & { readonly oidc: Oidc });

const KEPT = "skein.credentials";

let kept: Credentials | undefined = read();
let renewing: Promise<boolean> | undefined;
let leaving: Promise<never> | undefined;

function read(): Credentials | undefined {
  const text = sessionStorage.getItem(KEPT);
  return text === null ? undefined : (JSON.parse(text) as Credentials);
}

export const credentials = () => kept;

export function keepCredentials(given: Credentials | undefined): void {
  kept = given;
  if (given) sessionStorage.setItem(KEPT, JSON.stringify(given));
  else sessionStorage.removeItem(KEPT);
}

const USER = "skein.user";

/** Returns the tab's user, or undefined until the server has accepted the credentials. */
export const userOf = (): string | undefined => sessionStorage.getItem(USER) ?? undefined;

/** Sets the tab's user. If another user was using the tab, removes that user's data, such as drafts, and returns true. */
export function takeOver(user: string): boolean {
  const before = sessionStorage.getItem(USER);
  const isOther = before !== null && before !== user;
  if (isOther) sessionStorage.clear();
  sessionStorage.setItem(USER, user);
  if (isOther) keepCredentials(kept);
  return isOther;
}

/** Returns the tab's user, as tenant and user. */
export const userOfTab = (): string => sessionStorage.getItem(USER) ?? "";

/** Removes the credentials and all other data that the tab has stored. */
export function forgetAll(): void {
  kept = undefined;
  sessionStorage.clear();
}

/** The URL to which the issuer redirects: the page, without the part after `#`. */
export const pageUrl = () => location.origin + location.pathname;

/** How many ms before its expiry a token is renewed; at most half of the token's lifetime. */
const EARLY_MS = 30_000;
/**
 * The shortest useful lifetime of a new token, in ms. With a shorter lifetime, the page would have to sign in
 * continuously.
 */
const USELESS_MS = 2_000;

/**
 * Returns the headers of a request. Throws `IssuerUnavailable` if a token cannot be renewed right now, and `SignInRefused`
 * if it cannot be renewed at all.
 */
export async function headers(): Promise<Record<string, string>> {
  if (kept && "oidc" in kept && kept.expires_at !== undefined) {
    const left = kept.expires_at - Date.now();
    const early = Math.min(EARLY_MS, (kept.expires_at - kept.since) / 2);
    if (left <= 0) await replaceCredentials();
    else if (left < early) await renewed();
  }
  return kept ? { authorization: `Bearer ${kept.token}` } : {};
}

/** How long the redirect to the issuer may take, in ms. The page is open for longer if the user stops the redirect. */
const REDIRECT_MS = 30_000;

/**
 * Call this after the server has refused the credentials. Renews the tokens, or redirects to the issuer, which
 * redirects back at once if the user is still signed in there. Throws `IssuerUnavailable` if the page is not left,
 * and `SignInRefused` if there is no way to get new tokens.
 */
export async function replaceCredentials(): Promise<void> {
  if (await renewed()) return;
  if (!kept || !("oidc" in kept)) throw new SignInRefused(t().door.hasEnded);
  if (Date.now() - kept.since < USELESS_MS) throw new SignInRefused(t().oidc.endAtOnce);
  // The page knows only the last redirect's `state`, so a second one would invalidate the answer to the first.
  leaving ??= redirect(kept.oidc).finally(() => {
    leaving = undefined;
  });
  await leaving;
}

async function redirect(oidc: Oidc): Promise<never> {
  await leaveForIssuer(oidc, pageUrl(), true);
  await new Promise((resolve) => setTimeout(resolve, REDIRECT_MS));
  throw new IssuerUnavailable(t().oidc.silent);
}

let tellRenewed = () => {};

/** Calls `tell` after each renewal. */
export function onRenewed(tell: () => void): void {
  tellRenewed = tell;
}

/** Renews the tokens. Returns whether that succeeded. Throws `IssuerUnavailable`. */
function renewed(): Promise<boolean> {
  renewing ??= renew().finally(() => {
    renewing = undefined;
  });
  return renewing;
}

async function renew(): Promise<boolean> {
  if (!kept || !("oidc" in kept) || !kept.refresh_token) return false;
  const { oidc, refresh_token, id_token } = kept;
  try {
    const tokens = await refreshed(oidc, refresh_token);
    keepCredentials({ oidc, ...tokens, id_token: tokens.id_token ?? id_token });
    tellRenewed();
    return true;
  } catch (error) {
    if (!(error instanceof SignInRefused)) throw error;
    // The user may still be signed in at the issuer.
    keepCredentials({ ...kept, refresh_token: undefined });
    return false;
  }
}
