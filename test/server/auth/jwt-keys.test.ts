import type { RequestListener } from "node:http";
import { afterEach, describe, expect, test, vi } from "vitest";
import { JwtConfig } from "../../../src/server/auth/config.ts";
import { ec, pair, published, rsa, stranger, token, world } from "./issuer.ts";

afterEach(() => void vi.useRealTimers());

describe("algorithms", () => {
  test("that are not configured are refused", async () => {
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

  test("are not fetched again for every token with an unknown one", async () => {
    const { state, ask } = await world();
    await ask(await token());
    for (let n = 0; n < 10; n++)
      expect((await ask(await token({}, { kid: `made-up-${n}` }))).status).toBe(401);
    expect(state.asked).toBe(1);
  });

  test("are tried in turn for a token without a key id; a stranger's token is refused", async () => {
    const { state, ask } = await world();
    const other = await pair("RS256");
    const keys = [await published(other.publicKey, "a"), await published(rsa.publicKey, "b")];
    state.answer = (_, response) => response.end(JSON.stringify({ keys }));
    const header = { kid: undefined };
    expect((await ask(await token({}, { header }))).status).toBe(200);
    expect((await ask(await token({}, { header, key: stranger.privateKey }))).status).toBe(401);
    expect((await ask(await token({ exp: 1 }, { header }))).body.detail).toMatch(/has expired/);
  });

  test("can be rotated: a new key is accepted, and a removed one is not", async () => {
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
  ])("while the issuer %s: 503, without revealing whether the token is valid", async (_, answer) => {
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
