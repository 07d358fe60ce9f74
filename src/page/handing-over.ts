// The tabs of a browser hand each other who is signed in: a second one needs no form, and signing out signs out all. Nothing of it
// is stored, and no page of another origin hears it.

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

/** A tab that has them answers within this time, in ms. */
const PATIENCE_MS = 200;

const channel = new BroadcastChannel(`skein-credentials ${pageUrl()}`);
const tell = (told: SignInMessage) => channel.postMessage(told);

/** Those that an issuer renews are renewed by the tab that has signed in: issuers take the same refresh token once. */
function tellMine(): void {
  const mine = credentials();
  const user = userOf();
  if (!mine || user === undefined) return;
  tell({ kind: "has", user, credentials: "oidc" in mine ? { ...mine, refresh_token: undefined } : mine });
}

/** To be called when the server has accepted them. */
export const tellSignedIn = tellMine;
export const tellSignedOut = (): void => tell({ kind: "signed_out" });

/** Asks the other tabs. Returns whether this one has credentials now. */
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

/** Answers the other tabs. `signedIn` is called when this one has been handed credentials that it lacked. */
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
