// JSON Web Token authentication. The issuer's keys are fetched on first use. They are fetched again after ten minutes,
// or when a token names an unknown key.

import type { createRemoteJWKSet, errors, JWTPayload, JWTVerifyOptions, JWTVerifyResult } from "jose";
import { AppError } from "../../agent/core/errors.ts";
import { isObject } from "../../lib/json.ts";
import type { JwtConfig } from "./config.ts";
import { type Authenticate, bearerToken, unauthorized } from "./credentials.ts";
import { OwnerName, type Principal, Scope } from "./principal.ts";

/** The maximum time for the issuer to respond, in ms. */
const FETCH_MS = 3_000;
/** The maximum number of the issuer's keys to try for a token that does not name a key. */
const MAX_KEYS_TRIED = 16;
/** The maximum number of characters in a token. Issuers do not create longer tokens. */
const MAX_LENGTH = 8_192;

const MISSING = "Send a token: `Authorization: Bearer …`.";
const REFUSED = "The token is malformed, or the issuer did not sign it.";
/** The reasons to refuse a token with a valid signature, by claim. */
const WRONG_CLAIMS: Readonly<Record<string, string>> = {
  iss: "The token's issuer (`iss`) is not the one that this server trusts.",
  aud: "The token's audience (`aud`) does not include this server.",
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

/** Tries each of the issuer's keys that the algorithm allows, for a token that does not name a key. */
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

/** Returns true if the token itself is at fault. All other errors are failures to fetch the keys. */
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
  return new AppError("unavailable", "Cannot fetch the token issuer's keys right now. Try again later.", {
    cause,
  });
}

/** Returns the expiry in ms since 1970. A token accepted after its expiry stays valid until the end of the tolerance. */
function endOf({ exp }: JWTPayload, clockTolerance: number): number {
  // `jwtVerify` has checked that `exp` exists and is a number.
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

/**
 * Returns the claim with that name. If no claim has it, treats the dots as a path into maps, as in
 * `realm_access.roles`. Names that contain dots themselves are found too.
 */
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

/** Returns the values of a claim that is a list or a space-separated string. */
function listOf(value: unknown): readonly unknown[] {
  if (typeof value === "string") return value.split(" ");
  return Array.isArray(value) ? value : [];
}
