import { describe, expect, test } from "vitest";
import { CLIENT_ID, startOidcIssuer } from "../../support/oidc-issuer.ts";
import { startServer } from "../../support/server.ts";

const ask = async (url: string) => {
  const answer = await fetch(`${url}/sign-in`);
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
};
const connectionsOf = async (url: string) =>
  /connect-src ([^;]*)/.exec((await fetch(url)).headers.get("content-security-policy") ?? "")?.[1];

describe("a front end can read how people sign in", () => {
  const jwt = {
    jwks_url: "https://issuer.example/keys",
    issuer: "https://issuer.example",
    audience: "skein",
  };

  test.each<[string, object]>([
    ["none", {}],
    ["api_key", { scheme: "api_key" }],
    ["header", { scheme: "header", trusted_proxies: ["10.0.0.1"] }],
    ["jwt", { scheme: "jwt", jwt }],
  ])("with AUTH=%s, without credentials, and the page cannot call another server", async (scheme, auth) => {
    const { url } = await startServer({ config: { auth } });
    expect(await ask(url)).toEqual({ status: 200, body: { auth: scheme } });
    expect(await connectionsOf(url)).toBe("'self'");
  });

  test("with the operator's message, up to 1,000 characters", async () => {
    const note = "x".repeat(1000);
    const { url } = await startServer({ config: { auth: { note } } });
    expect(await ask(url)).toEqual({ status: 200, body: { auth: "none", note } });
    await expect(startServer({ config: { auth: { note: `${note}x` } } })).rejects.toThrow("1000");
  });

  test("at an issuer, with its address, and the page can request tokens there", async () => {
    const issuer = await startOidcIssuer();
    const { url } = await startServer({ config: { auth: issuer.auth } });
    expect(await ask(url)).toEqual({
      status: 200,
      body: {
        auth: "jwt",
        oidc: {
          ...{ issuer: issuer.url, audience: "skein", client_id: CLIENT_ID },
          ...{ scopes: "openid", token: "access_token" },
          authorization_endpoint: `${issuer.url}/authorize`,
          token_endpoint: `${issuer.url}/token`,
          end_session_endpoint: `${issuer.url}/logout`,
        },
      },
    });
    expect(await connectionsOf(url)).toBe(`'self' ${issuer.url}`);
  });

  test.each<[string, (url: string) => { status: number; body: object }]>([
    ["fails", () => ({ status: 500, body: {} })],
    [
      "says that it is another",
      (url) => ({ status: 200, body: { ...doors(url), issuer: "https://evil.example" } }),
    ],
    [
      "sends people over an open network",
      (url) => ({ status: 200, body: { ...doors(url), token_endpoint: "http://evil.example/token" } }),
    ],
    ["says too much", (url) => ({ status: 200, body: { ...doors(url), more: "x".repeat(300_000) } })],
  ])("unless the issuer %s, until it returns valid metadata", async (_, configuration) => {
    const issuer = await startOidcIssuer();
    issuer.state.configuration = configuration(issuer.url);
    const { url } = await startServer({ config: { auth: issuer.auth } });
    expect(await ask(url)).toMatchObject({ status: 503, body: { code: "unavailable" } });
    expect(await connectionsOf(url)).toBe("'self'");
    delete issuer.state.configuration;
    expect((await ask(url)).status).toBe(200);
  });
});

const doors = (url: string) => ({
  issuer: url,
  authorization_endpoint: `${url}/authorize`,
  token_endpoint: `${url}/token`,
});
