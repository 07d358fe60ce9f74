import { describe, expect, test } from "vitest";
import { AuthConfig, authProblems } from "../../../src/server/auth/config.ts";

const JWT = { jwks_url: "https://issuer.example/jwks", issuer: "https://issuer.example", audience: "skein" };
const problems = (host: string, auth: object) => authProblems(host, AuthConfig.parse(auth));

describe("without authentication, the server starts only on loopback addresses", () => {
  test.each(["127.0.0.1", "127.5.5.5", "localhost", "LocalHost", "::1", "::ffff:127.0.0.1"])(
    "on %s",
    (host) => {
      expect(problems(host, {})).toEqual([]);
    },
  );

  test.each([
    "0.0.0.0",
    "::",
    "10.0.0.1",
    "::ffff:10.0.0.1",
    "example.com",
    "localhost.example.com",
    "",
    "0x7f.1",
  ])("not on `%s`, and the error explains what to do", (host) => {
    expect(problems(host, {})).toEqual([
      expect.stringMatching(/AUTH=api_key.*AUTH=jwt.*AUTH=header.*HOST=127/),
    ]);
    expect(problems(host, { scheme: "api_key" })).toEqual([]);
  });
});

describe("a scheme requires its settings", () => {
  test("`jwt` needs the URL of the keys, the issuer and the audience, and the error names each missing one as variable and setting", () => {
    expect(problems("0.0.0.0", { scheme: "jwt", jwt: JWT })).toEqual([]);
    expect(problems("127.0.0.1", { scheme: "jwt" })).toEqual([
      expect.stringMatching(/AUTH=jwt requires JWT_JWKS_URL, or `auth\.jwt\.jwks_url` .*https:\/\//),
      expect.stringMatching(/AUTH=jwt requires JWT_ISSUER, or `auth\.jwt\.issuer` .*https:\/\//),
      expect.stringMatching(/AUTH=jwt requires JWT_AUDIENCE, or `auth\.jwt\.audience` /),
    ]);
    expect(problems("127.0.0.1", { scheme: "jwt", jwt: { ...JWT, audience: undefined } })).toHaveLength(1);
    expect(problems("127.0.0.1", { scheme: "api_key", jwt: {} })).toEqual([]);
  });

  test("`oidc` requires `jwt` and an issuer that people can be sent to", () => {
    const oidc = { client_id: "page" };
    expect(problems("0.0.0.0", { scheme: "jwt", jwt: JWT, oidc })).toEqual([]);
    expect(problems("0.0.0.0", { scheme: "api_key", oidc })).toEqual([
      expect.stringMatching(/requires AUTH=jwt, but AUTH is api_key/),
    ]);
    expect(problems("0.0.0.0", { scheme: "jwt", jwt: { ...JWT, issuer: "acme" }, oidc })).toEqual([
      expect.stringMatching(/JWT_ISSUER.*`acme`.*must be an https:\/\/ address/),
    ]);
  });

  test("`header` requires the addresses of the proxies whose headers it trusts", () => {
    expect(problems("0.0.0.0", { scheme: "header", trusted_proxies: ["10.0.0.0/8"] })).toEqual([]);
    expect(problems("127.0.0.1", { scheme: "header" })).toEqual([expect.stringMatching(/TRUSTED_PROXIES/)]);
  });
});

describe("settings that would let everyone in are refused", () => {
  test.each([
    ["all addresses trusted", { trusted_proxies: ["0.0.0.0/0"] }],
    ["all IPv6 addresses trusted", { trusted_proxies: ["::/0"] }],
    ["a name trusted", { trusted_proxies: ["gateway.internal"] }],
    ["a short ticket secret", { ticket_secret: "secret" }],
    ["keys over an open network", { jwt: { jwks_url: "http://issuer.example/jwks" } }],
    ["keys out of a file", { jwt: { jwks_url: "file:///etc/keys" } }],
    ["keys from a name that only looks local", { jwt: { jwks_url: "http://localhost.example/jwks" } }],
    ["no algorithm", { jwt: { algorithms: [] } }],
    ["a shared key", { jwt: { algorithms: ["RS256", "HS256"] } }],
    ["an empty audience", { jwt: { audience: "" } }],
    ["signing in without OpenID", { oidc: { client_id: "page", scopes: "email" } }],
    ["a scheme that has no name", { scheme: "Basic auth" }],
    ["a key that is none", { token: "x" }],
  ])("%s", (_, auth) => expect(AuthConfig.safeParse(auth).success).toBe(false));

  test("a scheme that neither Skein nor a plugin has", () => {
    expect(problems("127.0.0.1", { scheme: "api_kye" })).toEqual([
      expect.stringMatching(/auth\.scheme: `api_kye` must be one of .*did you mean `api_key`\?$/),
    ]);
    const auth = AuthConfig.parse({ scheme: "badge" });
    expect(authProblems("0.0.0.0", auth, ["badge"])).toEqual([]);
    expect(authProblems("0.0.0.0", auth, [])).toHaveLength(1);
  });

  test.each([
    "http://localhost:8080/jwks",
    "http://127.0.0.1/jwks",
    "http://[::1]:1/jwks",
    "https://x.example/",
  ])("keys can come from %s", (jwks_url) =>
    expect(AuthConfig.safeParse({ jwt: { jwks_url } }).success).toBe(true),
  );
});
