// How users sign in on the page: the scheme and, for OpenID Connect, the issuer's endpoints.

import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { type AuthConfig, IssuerUrl, kindOf, OidcConfig, SchemeKind } from "./config.ts";

const Endpoints = z.object({
  authorization_endpoint: IssuerUrl,
  token_endpoint: IssuerUrl,
  end_session_endpoint: IssuerUrl.optional(),
});
type Endpoints = z.output<typeof Endpoints>;

export const SignInOptions = z
  .object({
    auth: SchemeKind.describe("How the server authenticates requests."),
    oidc: z
      .object({ ...OidcConfig.shape, ...Endpoints.shape, issuer: z.string(), audience: z.string() })
      .optional()
      .describe(
        "Present with `jwt` if people can sign in at the issuer with the authorization code flow, PKCE and no client secret.",
      ),
    note: z.string().optional().describe("The operator's message to people who sign in, as plain text."),
  })
  .meta({ id: "SignInOptions" });
export type SignInOptions = z.output<typeof SignInOptions>;

/** The maximum time for the issuer to respond, in ms. */
const FETCH_MS = 3_000;
const MAX_BYTES = 256 * 1024;

/**
 * Queries the issuer when a front end first requests the options, and again until a query succeeds. Concurrent callers
 * share one query. The returned function throws `unavailable` if the issuer does not respond, or its response is not
 * valid.
 */
export function createSignIn({ scheme, oidc, jwt, note }: AuthConfig): () => Promise<SignInOptions> {
  const { issuer = "", audience = "" } = jwt;
  const plain = { auth: kindOf(scheme), ...(note === undefined ? {} : { note }) };
  let endpoints: Promise<Endpoints> | undefined;
  return async () => {
    if (!oidc) return plain;
    endpoints ??= endpointsOf(issuer).catch((cause) => {
      endpoints = undefined;
      throw new AppError(
        "unavailable",
        "Cannot read the token issuer's sign-in addresses right now. Try again later.",
        {
          cause,
        },
      );
    });
    return { ...plain, oidc: { ...oidc, ...(await endpoints), issuer, audience } };
  };
}

/** Throws if the issuer does not respond, or if the response names another issuer. */
async function endpointsOf(issuer: string): Promise<Endpoints> {
  const url = `${issuer.replace(/\/+$/, "")}/.well-known/openid-configuration`;
  const response = await fetch(url, { signal: AbortSignal.timeout(FETCH_MS) });
  if (!response.ok) throw new Error(`${url} responded with status ${response.status}.`);
  const answer: unknown = JSON.parse(await textOf(response));
  return Endpoints.extend({ issuer: z.literal(issuer) }).parse(answer);
}

async function textOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new Error(`The issuer's configuration is longer than ${MAX_BYTES} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
