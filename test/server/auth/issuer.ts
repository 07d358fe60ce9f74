// An issuer of tokens on this machine, a server that believes it, and tokens that are good or bad.

import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from "jose";
import { onTestFinished } from "vitest";
import { JwtConfig } from "../../../src/server/auth/config.ts";
import { authenticateJwt } from "../../../src/server/auth/jwt.ts";
import { answerTo, guarded } from "./guarded.ts";

export const ISSUER = "https://issuer.example";
export const AUDIENCE = "skein";
export const ADA = { tenant: "acme", sub: "ada", scope: "openid read run" };

export const pair = (alg: string) => generateKeyPair(alg, { extractable: true });
export const [rsa, ec, stranger] = await Promise.all([pair("RS256"), pair("ES256"), pair("RS256")]);
export const published = async (key: CryptoKey, kid: string, alg?: string) => ({
  ...(await exportJWK(key)),
  ...{ kid, use: "sig" },
  ...(alg ? { alg } : {}),
});
const KEYS = [await published(rsa.publicKey, "rsa"), await published(ec.publicKey, "ec", "ES256")];

/** An issuer on this machine; what it answers can be changed. */
export async function issuer() {
  const state = {
    asked: 0,
    answer: ((_, response) => response.end(JSON.stringify({ keys: KEYS }))) as RequestListener,
  };
  const server = createServer((request, response) => {
    state.asked++;
    state.answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  // It listens on a port.
  const { port } = server.address() as AddressInfo;
  return { state, url: `http://127.0.0.1:${port}/jwks.json` };
}

export async function world(more: Partial<JwtConfig> = {}) {
  const { state, url: jwks_url } = await issuer();
  const config = JwtConfig.parse({ jwks_url, issuer: ISSUER, audience: AUDIENCE, ...more });
  const { url } = await guarded(authenticateJwt(config));
  const ask = (token: string, path = "/threads/t") =>
    answerTo(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } });
  return { state, ask, url };
}

interface Making {
  readonly alg?: string;
  readonly kid?: string | undefined;
  readonly key?: CryptoKey | Uint8Array;
  readonly header?: Record<string, unknown>;
}

/** A token that is good unless `claims` or `making` make it bad. A claim that is undefined is left out. */
export function token(
  claims: Record<string, unknown> = {},
  { alg = "RS256", kid = "rsa", key = rsa.privateKey, header = {} }: Making = {},
) {
  const now = Math.floor(Date.now() / 1000);
  const payload = { iss: ISSUER, aud: AUDIENCE, exp: now + 300, ...ADA, ...claims };
  const kept = Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== undefined));
  return new SignJWT(kept).setProtectedHeader({ alg, kid, ...header }).sign(key);
}
