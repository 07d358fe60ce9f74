// Authentication by JSON Web Token. The issuer's keys are fetched on first use, and again after ten minutes or when a token names
// an unknown key.

import type { createRemoteJWKSet, errors, JWTPayload, JWTVerifyOptions, JWTVerifyResult } from "jose";
import { AppError } from "../../agent/core/errors.ts";
import { isObject } from "../../lib/json.ts";
import type { JwtConfig } from "./config.ts";
import { type Authenticate, bearerToken, unauthorized } from "./credentials.ts";
import { OwnerName, type Principal, Scope } from "./principal.ts";

/** How long the issuer may take to answer, in ms. */
const FETCH_MS = 3_000;
/** Keys of the issuer that are tried with a token that names none. */
const MAX_KEYS_TRIED = 16;
/** Longer than any token that issuers make. */
const MAX_LENGTH = 8_192;

const MISSING = "Send a token: `Authorization: Bearer …`.";
const REFUSED = "The token is malformed, or its signature is not one of the issuer's.";
/** What is wrong with a token whose signature is valid, by claim. */
const WRONG_CLAIMS: Readonly<Record<string, string>> = {
  iss: "The token is of another issuer (`iss`) than this server trusts.",
  aud: "The token is for another audience (`aud`) than this server.",
  exp: "The token must have an expiry (`exp`).",
  nbf: "The token is not valid yet (`nbf`).",
};

export function authenticateJwt({
  jwks_url,
  issuer,
  audience,
  algorithms,
  clock_tolerance: clockTolerance,
  ...claims
}: JwtConfig): Authenticate {
  const load = async () => {
    const jose = await import("jose");
    return { ...jose, keys: jose.createRemoteJWKSet(new URL(jwks_url), { timeoutDuration: FETCH_MS }) };
  };
  let loading: ReturnType<typeof load> | undefined;
  const options = { issuer, audience, algorithms, clockTolerance, requiredClaims: ["exp"] };

  return async (request) => {
    const token = bearerToken(request);
    if (token === undefined) throw unauthorized(MISSING);
    if (token.length > MAX_LENGTH) throw unauthorized(REFUSED);
    loading ??= load();
    const jose = await loading;
    const { payload } = await verified(token, options, jose).catch((error: unknown) => {
      if (isOfToken(error, jose.errors)) throw unauthorized(refusalOf(error, jose.errors), error);
      throw noKeys(error);
    });
    return { ...ownerOf(payload, claims), expires_at: endOf(payload, clockTolerance) };
  };
}

type Jose = typeof import("jose") & { readonly keys: ReturnType<typeof createRemoteJWKSet> };

/** A token that names no key is tried with each of the issuer's that its algorithm allows. */
async function verified(
  token: string,
  options: JWTVerifyOptions,
  { jwtVerify, keys, errors }: Jose,
): Promise<JWTVerifyResult> {
  try {
    return await jwtVerify(token, keys, options);
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    let tried = 0;
    for await (const key of error) {
      if (++tried > MAX_KEYS_TRIED) break;
      try {
        return await jwtVerify(token, key, options);
      } catch (refusal) {
        if (!(refusal instanceof errors.JWSSignatureVerificationFailed)) throw refusal;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
}

type Errors = typeof errors;

/** Errors of the token itself. All others are failures to fetch the keys. */
function isOfToken(error: unknown, of: Errors): boolean {
  const all = [
    ...[of.JWTInvalid, of.JWTExpired, of.JWTClaimValidationFailed, of.JWSInvalid],
    ...[of.JWSSignatureVerificationFailed, of.JOSEAlgNotAllowed, of.JOSENotSupported],
    ...[of.JWKSNoMatchingKey, of.JWKSMultipleMatchingKeys],
  ];
  return all.some((each) => error instanceof each);
}

function refusalOf(error: unknown, { JWTExpired, JWTClaimValidationFailed }: Errors): string {
  if (error instanceof JWTExpired) return "The token has expired.";
  if (error instanceof JWTClaimValidationFailed) return WRONG_CLAIMS[error.claim] ?? REFUSED;
  return REFUSED;
}

function noKeys(cause: unknown): AppError {
  return new AppError("unavailable", "Cannot fetch the keys of the token issuer. Try again later.", {
    cause,
  });
}

/** In ms. A token that is taken although it has expired by this clock lasts until the tolerance is over. */
function endOf({ exp }: JWTPayload, clockTolerance: number): number {
  // Required, and a number, as `jwtVerify` has checked.
  const end = Number(exp) * 1000;
  return end > Date.now() ? end : end + clockTolerance * 1000;
}

type Claims = Pick<JwtConfig, "tenant_claim" | "user_claim" | "scopes_claim">;

function ownerOf(
  payload: JWTPayload,
  { tenant_claim, user_claim, scopes_claim }: Claims,
): Pick<Principal, "tenant" | "user" | "scopes"> {
  const named = listOf(claimAt(payload, scopes_claim));
  return {
    tenant: nameIn(payload, tenant_claim),
    user: nameIn(payload, user_claim),
    scopes: Scope.options.filter((scope) => named.includes(scope)),
  };
}

/** The claim of that name, else what its dots lead to: `realm_access.roles`, also through names that have dots themselves. */
function claimAt(claims: unknown, name: string): unknown {
  if (!isObject(claims)) return undefined;
  if (Object.hasOwn(claims, name)) return claims[name];
  for (let dot = name.indexOf("."); dot !== -1; dot = name.indexOf(".", dot + 1)) {
    const outer = name.slice(0, dot);
    const found = Object.hasOwn(claims, outer) ? claimAt(claims[outer], name.slice(dot + 1)) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

function nameIn(payload: JWTPayload, name: string): string {
  const checked = OwnerName.safeParse(claimAt(payload, name));
  if (checked.success) return checked.data;
  throw unauthorized(`The token's claim \`${name}\` must be a string of 1 to 256 characters without spaces.`);
}

/** The values of a claim: a list, or a text separated by spaces. */
function listOf(value: unknown): readonly unknown[] {
  if (typeof value === "string") return value.split(" ");
  return Array.isArray(value) ? value : [];
}
