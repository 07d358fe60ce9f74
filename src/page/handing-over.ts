// Passes the credentials between the tabs of a browser, so a new tab needs no sign-in and signing out affects all tabs.
// Nothing is stored, and pages of other origins cannot receive the credentials.

import {
  type Credentials,
  credentials,
  forgetAll,
  keepCredentials,
  onRenewed,
  pageUrl,
  userOf,
} from "./credentials.ts";

type SignInMessage =
  | { readonly kind: "asks" }
  | { readonly kind: "signed_out" }
  | { readonly kind: "has"; readonly user: string; readonly credentials: Credentials };

/** The time within which another tab answers, in ms. */
const PATIENCE_MS = 200;

const channel = new BroadcastChannel(`skein-credentials ${pageUrl()}`);
const tell = (told: SignInMessage) => channel.postMessage(told);

/** Only the tab that signed in renews an issuer's tokens, because issuers accept each refresh token only once. */
function tellMine(): void {
  const mine = credentials();
  const user = userOf();
  if (!mine || user === undefined) return;
  tell({ kind: "has", user, credentials: "oidc" in mine ? { ...mine, refresh_token: undefined } : mine });
}

/** Call this once the server has accepted the credentials. */
export const tellSignedIn = tellMine;
export const tellSignedOut = (): void => tell({ kind: "signed_out" });

/** Asks the other tabs for credentials. Returns whether this tab now has credentials. */
export function takeHandedOver(): Promise<boolean> {
  tell({ kind: "asks" });
  return new Promise((resolve) => {
    const end = (isGiven: boolean) => {
      clearTimeout(timer);
      channel.removeEventListener("message", hear);
      resolve(isGiven);
    };
    const hear = ({ data }: MessageEvent<SignInMessage>) => {
      if (data.kind !== "has") return;
      keepCredentials(data.credentials);
      end(true);
    };
    const timer = setTimeout(end, PATIENCE_MS, false);
    channel.addEventListener("message", hear);
  });
}

/** Answers the other tabs. Calls `signedIn` when another tab has passed credentials to this one. */
export function followTabs(signedIn: () => void): void {
  onRenewed(tellMine);
  channel.addEventListener("message", ({ data }: MessageEvent<SignInMessage>) => {
    const mine = credentials();
    if (data.kind === "asks") tellMine();
    else if (data.kind === "signed_out") {
      if (!mine) return;
      forgetAll();
      location.reload();
    } else if (!mine) {
      keepCredentials(data.credentials);
      signedIn();
    } else if ("oidc" in mine && !mine.refresh_token && data.user === userOf()) {
      keepCredentials(data.credentials);
    }
  });
}
