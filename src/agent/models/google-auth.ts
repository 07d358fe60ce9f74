// Gets Google credentials from a file, a machine, a workload or a login. Google's own library finds and renews
// them.

import type { OAuth2Client } from "google-auth-library";
import { type ModelOptions, secretOf } from "./options.ts";
import { packageFor } from "./package.ts";

const SCOPE = "https://www.googleapis.com/auth/cloud-platform";
const load = (name: string) => packageFor(name, "google-auth-library", () => import("google-auth-library"));

/** Returns a function that provides an access token for each request. */
export async function googleTokens({ name }: Pick<ModelOptions, "name">): Promise<() => Promise<string>> {
  const { GoogleAuth } = await load(name);
  const auth = new GoogleAuth({ scopes: SCOPE });
  return async () => (await auth.getAccessToken()) ?? "";
}

/**
 * Returns the token that was configured instead of a key, in the form that Google's clients accept, or
 * undefined if no token was configured.
 */
export async function givenToken({ name, key }: ModelOptions): Promise<OAuth2Client | undefined> {
  if (!("secret" in key)) return undefined;
  const { OAuth2Client } = await load(name);
  const client = new OAuth2Client();
  client.setCredentials({ access_token: secretOf(key, name) });
  return client;
}
