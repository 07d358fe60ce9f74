// The credentials of this tab. They live as long as the tab: no script of another page reads them, and closing it forgets them.
// Other tabs of the page are handed them: handing-over.ts.

import { leaveForIssuer, type Oidc, refreshed, SignInRefused, type Tokens } from "./oidc.ts";
import { t } from "./texts.ts";

/** A key or a token that was typed in, or the tokens of an issuer. */
export type Credentials = { readonly token: string } | (Tokens & { readonly oidc: Oidc });

const KEPT = "skein.credentials";

let kept: Credentials | undefined = read();
let renewing: Promise<boolean> | undefined;
let leaving: Promise<void> | undefined;

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

/** Whose the tab is: known once the server has accepted the credentials. */
export const userOf = (): string | undefined => sessionStorage.getItem(USER) ?? undefined;

/** Says whose the tab is. What another user has left in it, such as drafts, is forgotten; then the answer is true. */
export function takeOver(user: string): boolean {
  const before = sessionStorage.getItem(USER);
  const isOther = before !== null && before !== user;
  if (isOther) sessionStorage.clear();
  sessionStorage.setItem(USER, user);
  if (isOther) keepCredentials(kept);
  return isOther;
}

/** Whose the tab is: the tenant and the user. */
export const userOfTab = (): string => sessionStorage.getItem(USER) ?? "";

/** Forgets the credentials and everything else that the tab has stored. */
export function forgetAll(): void {
  kept = undefined;
  sessionStorage.clear();
}

/** Where the issuer sends people back to: the page, without what comes after `#`. */
export const pageUrl = () => location.origin + location.pathname;

/** A token is renewed so long before its end, in ms, or after half of its time, if the issuer renews tokens. */
const EARLY_MS = 30_000;
/** Tokens that end sooner after a sign-in are of no use: the page would do nothing but sign in. */
const USELESS_MS = 2_000;

/** For each request. Throws `ConnectionLost` while a token cannot be renewed, `SignInRefused` when it has ended for good. */
export async function headers(): Promise<Record<string, string>> {
  if (kept && "oidc" in kept && kept.expires_at !== undefined) {
    const left = kept.expires_at - Date.now();
    const early = Math.min(EARLY_MS, (kept.expires_at - kept.since) / 2);
    if (left <= 0) await replaceCredentials();
    else if (left < early) await renewed();
  }
  return kept ? { authorization: `Bearer ${kept.token}` } : {};
}

/**
 * After the server has refused them: renews the tokens, or goes to the issuer, which returns to the page at once if the person
 * is still signed in there; then it never resolves. Throws `ConnectionLost`; `SignInRefused` when there is no way to new ones.
 */
export async function replaceCredentials(): Promise<void> {
  if (await renewed()) return;
  if (!kept || !("oidc" in kept)) throw new SignInRefused(t().door.hasEnded);
  if (Date.now() - kept.since < USELESS_MS) throw new SignInRefused(t().oidc.endAtOnce);
  leaving ??= leaveForIssuer(kept.oidc, pageUrl(), true).finally(() => {
    leaving = undefined;
  });
  await leaving;
  await new Promise(() => {});
}

let tellRenewed = () => {};

/** Calls `tell` after each renewal. */
export function onRenewed(tell: () => void): void {
  tellRenewed = tell;
}

/** Whether there are new tokens now. Throws `ConnectionLost`. */
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
    // The session at the issuer may still be good.
    keepCredentials({ ...kept, refresh_token: undefined });
    return false;
  }
}
