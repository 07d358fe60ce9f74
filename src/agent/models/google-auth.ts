// Google's credentials: those of a file, a machine, a workload or a login, as Google's own library finds and renews them.

import type { OAuth2Client } from "google-auth-library";
import { type ModelOptions, secretOf } from "./options.ts";
import { packageFor } from "./package.ts";

const SCOPE = "https://www.googleapis.com/auth/cloud-platform";
const load = (name: string) => packageFor(name, "google-auth-library", () => import("google-auth-library"));

/** What to call for an access token before each request. */
export async function googleTokens({ name }: Pick<ModelOptions, "name">): Promise<() => Promise<string>> {
  const { GoogleAuth } = await load(name);
  const auth = new GoogleAuth({ scopes: SCOPE });
  return async () => (await auth.getAccessToken()) ?? "";
}

/** The token that is configured in place of a key, as Google's clients take one; undefined without one. */
export async function givenToken({ name, key }: ModelOptions): Promise<OAuth2Client | undefined> {
  if (!("secret" in key)) return undefined;
  const { OAuth2Client } = await load(name);
  const client = new OAuth2Client();
  client.setCredentials({ access_token: secretOf(key, name) });
  return client;
}
