import { exportJWK, exportSPKI, UnsecuredJWT } from "jose";
import { describe, expect, test } from "vitest";
import { answerTo } from "./guarded.ts";
import { ADA, AUDIENCE, ec, ISSUER, rsa, stranger, token, world } from "./issuer.ts";

const inSeconds = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;

describe("a token of the issuer", () => {
  test("authenticates its subject with the known scopes that it names", async () => {
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
  ])("can name its scopes as %s", async (_, scope, scopes) => {
    const { ask } = await world();
    expect(await ask(await token({ scope }))).toMatchObject({ status: 200, body: { scopes } });
  });

  test.each([undefined, "", {}, 1, ["run"], "run"])("without the scope is refused (%j)", async (scope) => {
    const { ask } = await world();
    expect(await ask(await token({ scope }))).toMatchObject({
      status: 403,
      body: { details: { scope: "read" } },
    });
  });

  test("can have claims with other names", async () => {
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

  test("can have claims nested in maps, like Keycloak's roles, even under names with dots", async () => {
    const { ask } = await world({
      tenant_claim: "organization.acme.example.id",
      scopes_claim: "realm_access.roles",
    });
    const claims = {
      realm_access: { roles: ["read", "offline_access"] },
      organization: { "acme.example": { id: "o1" } },
    };
    expect(await ask(await token(claims))).toMatchObject({
      status: 200,
      body: { tenant: "o1", scopes: ["read"] },
    });
    // A claim of that very name comes first.
    const own = { ...claims, "realm_access.roles": "run read" };
    expect(await ask(await token(own))).toMatchObject({ body: { scopes: ["run", "read"] } });
    expect((await ask(await token({ ...claims, organization: "acme" }))).status).toBe(401);
  });

  test("can be up to a minute late or early, or as much as the operator allows", async () => {
    const { ask } = await world();
    const late = inSeconds(-30);
    // What it opened ends with it, or with the tolerance if it came late.
    expect((await ask(await token({ exp: late }))).body.expires_at).toBe((late + 60) * 1000);
    const early = inSeconds(50);
    expect((await ask(await token({ exp: early }))).body.expires_at).toBe(early * 1000);
    expect((await ask(await token({ nbf: inSeconds(50) }))).status).toBe(200);
    const exact = await world({ clock_tolerance: 1 });
    expect((await exact.ask(await token({ exp: inSeconds(-10) }))).status).toBe(401);
  });
});

describe("a signed token is refused with the error in it", () => {
  test.each<[string, () => Record<string, unknown>, RegExp]>([
    ["one that has expired", () => ({ exp: inSeconds(-90) }), /has expired/],
    ["one that never expires", () => ({ exp: undefined }), /`exp`/],
    ["one that is not valid yet", () => ({ nbf: inSeconds(90) }), /not valid yet/],
    ["one for another server", () => ({ aud: "other" }), /`aud`/],
    ["one without an audience", () => ({ aud: undefined }), /`aud`/],
    ["one of another issuer", () => ({ iss: "https://issuer.example.evil" }), /`iss`/],
    ["one of no issuer", () => ({ iss: undefined }), /`iss`/],
  ])("%s", async (_, faulty, detail) => {
    const { ask } = await world();
    const claims = faulty();
    const answer = await ask(await token(claims));
    expect(answer).toMatchObject({ status: 401, challenge: 'Bearer realm="skein"' });
    expect(answer.body.detail).toMatch(detail);
    // Who has no key of the issuer learns nothing of what it would take.
    const forged = await ask(await token(claims, { key: stranger.privateKey }));
    expect(forged.body.detail).toMatch(/malformed, or the issuer did not sign it/);
  });
});

describe("every other token is refused, with 401 and the same message", () => {
  const words = async () => {
    const { ask } = await world();
    return ask("x");
  };

  test.each<[string, () => Promise<string> | string]>([
    ["no token at all", () => "x"],
    ["one signed with another key", () => token({}, { key: stranger.privateKey })],
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

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
