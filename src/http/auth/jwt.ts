// Authentication by JSON Web Token. The issuer's keys are fetched on first use, and again after ten minutes or when a token names
// an unknown key.

import type { errors, JWTPayload } from "jose";
import { AppError } from "../../core/errors.ts";
import type { JwtConfig } from "./config.ts";
import { type Authenticate, bearerToken, unauthorized } from "./credentials.ts";
import { OwnerName, type Principal, Scope } from "./principal.ts";

/** Tolerated clock difference between issuer and server, in s. */
const TOLERANCE_S = 5;
/** How long the issuer may take to answer, in ms. */
const FETCH_MS = 3_000;
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
  ...claims
}: JwtConfig): Authenticate {
  const load = async () => {
    const jose = await import("jose");
    return { ...jose, keys: jose.createRemoteJWKSet(new URL(jwks_url), { timeoutDuration: FETCH_MS }) };
  };
  let loading: ReturnType<typeof load> | undefined;
  const options = { issuer, audience, algorithms, clockTolerance: TOLERANCE_S, requiredClaims: ["exp"] };

  return async (request) => {
    const token = bearerToken(request);
    if (token === undefined) throw unauthorized(MISSING);
    if (token.length > MAX_LENGTH) throw unauthorized(REFUSED);
    loading ??= load();
    const { jwtVerify, keys, errors } = await loading;
    const { payload } = await jwtVerify(token, keys, options).catch((error: unknown) => {
      throw isOfToken(error, errors) ? unauthorized(refusalOf(error, errors), error) : noKeys(error);
    });
    return principalOf(payload, claims);
  };
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

type Claims = Pick<JwtConfig, "tenant_claim" | "user_claim" | "scopes_claim">;

function principalOf(payload: JWTPayload, { tenant_claim, user_claim, scopes_claim }: Claims): Principal {
  return {
    tenant: nameIn(payload, tenant_claim),
    user: nameIn(payload, user_claim),
    scopes: Scope.options.filter((scope) => listOf(payload[scopes_claim]).includes(scope)),
    // Required, and a number, as `jwtVerify` has checked.
    expires_at: Number(payload.exp) * 1000,
  };
}

function nameIn(payload: JWTPayload, name: string): string {
  const checked = OwnerName.safeParse(payload[name]);
  if (checked.success) return checked.data;
  throw unauthorized(`The token's claim \`${name}\` must be a string of 1 to 256 characters without spaces.`);
}

/** The values of a claim: a list, or a text separated by spaces. */
function listOf(value: unknown): readonly unknown[] {
  if (typeof value === "string") return value.split(" ");
  return Array.isArray(value) ? value : [];
}
