import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, SignJWT, UnsecuredJWT } from "jose";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { JwtConfig } from "../../../src/core/auth-config.ts";
import { authenticateJwt } from "../../../src/http/auth/jwt.ts";
import { answerTo, guarded } from "./guarded.ts";

const ISSUER = "https://issuer.example";
const AUDIENCE = "skein";
const ADA = { tenant: "acme", sub: "ada", scope: "openid read run" };

const pair = (alg: string) => generateKeyPair(alg, { extractable: true });
const [rsa, ec, stranger] = await Promise.all([pair("RS256"), pair("ES256"), pair("RS256")]);
const published = async (key: CryptoKey, kid: string, alg?: string) => ({
  ...(await exportJWK(key)),
  ...{ kid, use: "sig" },
  ...(alg ? { alg } : {}),
});
const KEYS = [await published(rsa.publicKey, "rsa"), await published(ec.publicKey, "ec", "ES256")];

/** An issuer on this machine; what it answers can be changed. */
async function issuer() {
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

async function world(more: Partial<JwtConfig> = {}) {
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
function token(
  claims: Record<string, unknown> = {},
  { alg = "RS256", kid = "rsa", key = rsa.privateKey, header = {} }: Making = {},
) {
  const now = Math.floor(Date.now() / 1000);
  const payload = { iss: ISSUER, aud: AUDIENCE, exp: now + 300, ...ADA, ...claims };
  const kept = Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== undefined));
  return new SignJWT(kept).setProtectedHeader({ alg, kid, ...header }).sign(key);
}

const inSeconds = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;

afterEach(() => void vi.useRealTimers());

describe("a token of the issuer", () => {
  test("lets in whom it names, with the scopes of ours that it names", async () => {
    const { ask } = await world();
    const expected = { status: 200, body: { tenant: "acme", user: "ada", scopes: ["run", "read"] } };
    expect(await ask(await token())).toMatchObject(expected);
    expect(await ask(await token({}, { alg: "ES256", kid: "ec", key: ec.privateKey }))).toMatchObject(
      expected,
    );
  });

  test.each<[string, unknown, string[]]>([
    ["a text", "read admin", ["read", "admin"]],
    ["a list", ["tools", "read", 7, null], ["read", "tools"]],
    ["others' scopes beside ours", "openid email read readonly READ", ["read"]],
  ])("may name its scopes as %s", async (_, scope, scopes) => {
    const { ask } = await world();
    expect(await ask(await token({ scope }))).toMatchObject({ status: 200, body: { scopes } });
  });

  test.each([undefined, "", {}, 1, ["run"], "run"])("without the scope may not (%j)", async (scope) => {
    const { ask } = await world();
    expect(await ask(await token({ scope }))).toMatchObject({
      status: 403,
      body: { details: { scope: "read" } },
    });
  });

  test("may have claims of other names", async () => {
    const { ask } = await world({
      tenant_claim: "https://acme.example/org",
      user_claim: "email",
      scopes_claim: "roles",
    });
    const claims = { "https://acme.example/org": "o1", email: "ada@acme.example", roles: ["read"] };
    expect(await ask(await token(claims))).toMatchObject({
      status: 200,
      body: { tenant: "o1", user: "ada@acme.example", scopes: ["read"] },
    });
  });

  test("may be a little late or early, as clocks are", async () => {
    const { ask } = await world();
    expect((await ask(await token({ exp: inSeconds(-2) }))).status).toBe(200);
    expect((await ask(await token({ nbf: inSeconds(2) }))).status).toBe(200);
  });
});

describe("every other token is refused, with 401 and the same words", () => {
  const words = async () => {
    const { ask } = await world();
    return ask("x");
  };

  test.each<[string, () => Promise<string> | string]>([
    ["no token at all", () => "x"],
    ["one that has expired", () => token({ exp: inSeconds(-60) })],
    ["one that never expires", () => token({ exp: undefined })],
    ["one that is not valid yet", () => token({ nbf: inSeconds(60) })],
    ["one for another server", () => token({ aud: "other" })],
    ["one for nobody in particular", () => token({ aud: undefined })],
    ["one of another issuer", () => token({ iss: "https://issuer.example.evil" })],
    ["one of no issuer", () => token({ iss: undefined })],
    ["one signed by somebody else", () => token({}, { key: stranger.privateKey })],
    ["one with an unknown key", () => token({}, { key: stranger.privateKey, kid: "other" })],
    [
      "one that brings its own key",
      async () =>
        token(
          {},
          {
            key: stranger.privateKey,
            kid: "own",
            header: {
              jwk: await exportJWK(stranger.publicKey),
              jku: "http://127.0.0.1:1/",
              x5u: "http://127.0.0.1:1/",
            },
          },
        ),
    ],
    [
      "one whose algorithm is none",
      () => new UnsecuredJWT({ iss: ISSUER, aud: AUDIENCE, exp: inSeconds(60), ...ADA }).encode(),
    ],
    [
      "one signed with the public key as a secret",
      async () => token({}, { alg: "HS256", key: new TextEncoder().encode(await exportSPKI(rsa.publicKey)) }),
    ],
    [
      "one of another key's algorithm",
      async () => {
        const [, payload, mark] = (await token()).split(".");
        return [encoded({ alg: "ES256", kid: "rsa" }), payload, mark].join(".");
      },
    ],
    [
      "one that was changed",
      async () => {
        const [header, , mark] = (await token()).split(".");
        const forged = { iss: ISSUER, aud: AUDIENCE, exp: inSeconds(60), ...ADA, sub: "eve" };
        return [header, encoded(forged), mark].join(".");
      },
    ],
    ["one whose signature was cut off", async () => `${(await token()).split(".").slice(0, 2).join(".")}.`],
    [
      "one with an extension that is not understood",
      async () => {
        const [, payload, mark] = (await token()).split(".");
        return [encoded({ alg: "RS256", kid: "rsa", crit: ["exp"], exp: 1 }), payload, mark].join(".");
      },
    ],
    [
      "one whose key id is no text",
      async () => {
        const [, payload, mark] = (await token()).split(".");
        return [encoded({ alg: "RS256", kid: { a: 1 } }), payload, mark].join(".");
      },
    ],
    ["one that is encrypted", () => "a.b.c.d.e"],
    [
      "one whose claims are no map",
      async () => [encoded({ alg: "RS256", kid: "rsa" }), encoded([]), "AAAA"].join("."),
    ],
    ["one that is too long", () => token({ filler: "x".repeat(9_000) })],
    ["an API key", () => `sk_${"0".repeat(22)}_${"0".repeat(43)}`],
  ])("%s", async (_, make) => {
    const { ask } = await world();
    const answer = await ask(await make());
    expect(answer).toMatchObject({ status: 401, challenge: 'Bearer realm="skein"' });
    expect(answer).toEqual(await words());
  });

  test.each<[string, Record<string, unknown>]>([
    ["no tenant", { tenant: undefined }],
    ["an empty tenant", { tenant: "" }],
    ["a tenant that is no text", { tenant: ["acme"] }],
    ["a user that is a number", { sub: 7 }],
    ["a user with a line break", { sub: "ada\r\nx-evil: 1" }],
    ["a user that looks like another", { sub: "ada\u200b" }],
    ["a user that is very long", { sub: "a".repeat(257) }],
  ])("one that names %s", async (_, claims) => {
    const { ask } = await world();
    expect(await ask(await token(claims))).toMatchObject({ status: 401, body: { code: "unauthorized" } });
  });

  test("one without a claim that every object has", async () => {
    for (const tenant_claim of ["constructor", "__proto__", "toString"]) {
      const { ask } = await world({ tenant_claim });
      expect((await ask(await token())).status).toBe(401);
    }
  });

  test("none", async () => {
    const { url } = await world();
    expect(await answerTo(`${url}/threads/t`)).toMatchObject({
      ...{ status: 401, challenge: 'Bearer realm="skein"' },
      body: { detail: expect.stringContaining("Authorization: Bearer") },
    });
  });
});

describe("algorithms", () => {
  test("that were not chosen are refused", async () => {
    const { ask } = await world({ algorithms: ["ES256"] });
    expect((await ask(await token())).status).toBe(401);
    expect((await ask(await token({}, { alg: "ES256", kid: "ec", key: ec.privateKey }))).status).toBe(200);
  });

  test.each(["none", "HS256", "HS512", "dir"])("cannot be `%s`", (algorithm) => {
    const config = { jwks_url: "https://x.example/", issuer: "x", audience: "x", algorithms: [algorithm] };
    expect(JwtConfig.safeParse(config).success).toBe(false);
  });
});

describe("the issuer's keys", () => {
  test("are fetched once for many requests", async () => {
    const { state, ask } = await world();
    const good = await token();
    await Promise.all(Array.from({ length: 20 }, () => ask(good)));
    await ask(good);
    expect(state.asked).toBe(1);
  });

  test("are not fetched again for each token with an unknown one", async () => {
    const { state, ask } = await world();
    await ask(await token());
    for (let n = 0; n < 10; n++)
      expect((await ask(await token({}, { kid: `made-up-${n}` }))).status).toBe(401);
    expect(state.asked).toBe(1);
  });

  test("may change: a new one is taken, and one that is gone is not", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const { state, ask } = await world();
    const fresh = await pair("RS256");
    expect((await ask(await token())).status).toBe(200);
    const keys = [await published(fresh.publicKey, "fresh")];
    state.answer = (_, response) => response.end(JSON.stringify({ keys }));
    vi.setSystemTime(Date.now() + 60_000);
    expect((await ask(await token({}, { kid: "fresh", key: fresh.privateKey }))).status).toBe(200);
    expect((await ask(await token())).status).toBe(401);
  });

  test.each<[string, RequestListener]>([
    ["fails", (_, response) => response.writeHead(500).end("oops")],
    ["breaks off", (request) => request.socket.destroy()],
    ["answers with a page", (_, response) => response.end("<html>")],
    ["answers with something else", (_, response) => response.end("{}")],
    [
      "sends us elsewhere",
      (_, response) => response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
    ],
    ["never answers", () => {}],
  ])("while the issuer %s: 503, and not a word on whether the token is good", async (_, answer) => {
    const { state, ask } = await world();
    const works = state.answer;
    state.answer = answer;
    const [good, bad] = await Promise.all([
      ask(await token()),
      ask(await token({}, { key: stranger.privateKey })),
    ]);
    expect(good).toMatchObject({ status: 503, body: { code: "unavailable" }, challenge: null });
    expect(bad).toEqual(good);
    expect(JSON.stringify(good)).not.toContain("127.0.0.1");
    state.answer = works;
    expect((await ask(await token())).status).toBe(200);
  });
});

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
