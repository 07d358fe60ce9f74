import { request } from "node:http";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { AppError } from "../../../src/agent/core/errors.ts";
import { authenticateApiKey, cachedKeys } from "../../../src/server/auth/api-key.ts";
import { type ApiKeyStore, issueApiKey, type NewApiKey } from "../../../src/server/auth/api-keys.ts";
import { memoryApiKeys } from "../../support/api-keys.ts";
import { answerTo, guarded } from "./guarded.ts";

const START = Date.parse("2026-11-21T10:00:00.000Z");
/** How long a revoked key may still work. */
const SECONDS = 5_000;

async function world(wrap: (store: ApiKeyStore) => ApiKeyStore = (store) => store) {
  let time = START;
  const now = () => time;
  const store = memoryApiKeys(now);
  const { url, port } = await guarded(authenticateApiKey(cachedKeys(wrap(store), now), now));
  const make = async (more: Partial<NewApiKey> = {}) =>
    issueApiKey(store, { tenant: "acme", user: "ada", scopes: ["read"], name: "", ...more });
  const ask = (key?: string) =>
    answerTo(`${url}/threads/t`, key === undefined ? {} : { headers: bearer(key) });
  return {
    ...{ url, port, store, make, ask },
    advance: (ms: number) => {
      time += ms;
    },
  };
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

describe("an API key", () => {
  test("authenticates its owner, in either header, only with its scopes", async () => {
    const { url, make } = await world();
    const { key } = await make();
    const ada = { tenant: "acme", user: "ada", scopes: ["read"] };
    const headers = [bearer(key), { authorization: `bearer  ${key}` }, { "x-api-key": key }];
    for (const each of headers)
      expect(await answerTo(`${url}/threads/t`, { headers: each })).toMatchObject({ status: 200, body: ada });
    const post = await answerTo(`${url}/threads`, { method: "POST", headers: bearer(key) });
    expect(post).toMatchObject({ status: 403, body: { code: "forbidden", details: { scope: "run" } } });
  });

  test("is requested with an explanation of how to send it", async () => {
    const { ask } = await world();
    expect(await ask()).toEqual({
      ...{ status: 401, challenge: 'Bearer realm="skein"' },
      body: {
        ...{ type: expect.stringMatching(/#unauthorized$/), title: "unauthorized" },
        ...{ status: 401, code: "unauthorized" },
        detail: expect.stringContaining("Authorization: Bearer sk_"),
      },
    });
  });

  test("that is wrong is always refused with the same message", async () => {
    const { make, ask, store, advance } = await world();
    const { key } = await make();
    const other = await make({ user: "bob" });
    const revoked = await make();
    await store.revoke(revoked.record.id);
    const expired = await make({ expires_at: new Date(START + 1000).toISOString() });
    const unreadable = await make({ expires_at: "soon" });
    advance(1000);
    const [prefix, id, secret = ""] = [key.slice(0, 3), key.slice(3, 25), key.slice(26)];
    const changed = (secret.startsWith("A") ? "B" : "A") + secret.slice(1);
    const wrong = {
      "an unknown id": `${prefix}${"0".repeat(22)}_${secret}`,
      "another secret": `${prefix}${id}_${changed}`,
      "the last character changed": key.slice(0, -1) + (key.endsWith("A") ? "B" : "A"),
      "another key's secret": `${prefix}${id}_${other.key.slice(26)}`,
      revoked: revoked.key,
      expired: expired.key,
      "an end that cannot be read": unreadable.key,
      "cut off": key.slice(0, -1),
      "longer than it may be": `${key}A`,
      "without its prefix": key.slice(3),
      "in capitals": key.toUpperCase(),
      "its id alone": `${prefix}${id}_`,
      "its hash": String((await store.find(id))?.hash),
      "a JSON Web Token": "eyJhbGciOiJub25lIn0.e30.",
      "a pattern": `${prefix}${"*".repeat(22)}_${secret}`,
      "very long": "sk_".repeat(4_000),
    };
    const answers = await Promise.all(Object.values(wrong).map(ask));
    const words = answers[0];
    expect(words).toMatchObject({ status: 401, challenge: 'Bearer realm="skein"' });
    for (const [index, name] of Object.keys(wrong).entries()) expect(answers[index], name).toEqual(words);
    expect((await ask(key)).status).toBe(200);
  });

  test("counts once in two headers, and a value in another format next to it is ignored", async () => {
    const { url, make } = await world();
    const { key } = await make();
    const other = { "x-api-key": "lsv2_pt_of_another_service" };
    for (const headers of [
      { ...bearer(key), "x-api-key": key },
      { ...bearer(key), ...other },
      { ...bearer(key), "x-api-key": "" },
      { ...bearer("EMPTY"), "x-api-key": key },
      { authorization: "Basic YTpi", "x-api-key": key },
    ])
      expect(await answerTo(`${url}/threads/t`, { headers })).toMatchObject({ body: { user: "ada" } });
    for (const headers of [
      { ...bearer("EMPTY"), ...other },
      { authorization: "Basic YTpi", ...other },
    ])
      expect((await answerTo(`${url}/threads/t`, { headers })).status).toBe(401);
  });

  test("two different ones are refused, and the error names both headers", async () => {
    const { url, make } = await world();
    const headers = { ...bearer((await make()).key), "x-api-key": (await make({ user: "eve" })).key };
    const { status, body } = await answerTo(`${url}/threads/t`, { headers });
    expect(status).toBe(401);
    expect(body.detail).toBe(
      "The headers `authorization` and `x-api-key` contain different API keys. Send one of them.",
    );
  });

  test.each([
    ["two keys in two headers", ["authorization", "x-api-key"]],
    ["the same header twice", ["authorization", "authorization"]],
    ["the other header twice", ["x-api-key", "x-api-key"]],
  ])("is not chosen among several: %s", async (_, names) => {
    const { port, make } = await world();
    const keys = [(await make()).key, (await make({ user: "eve" })).key];
    const headers = names.flatMap((name, index) => [
      name,
      name === "x-api-key" ? keys[index] : `Bearer ${keys[index]}`,
    ]);
    expect(await sent(port, headers)).toMatchObject({ status: 401 });
  });

  test.each(["Basic YTpi", "Bearer", "Bearer ", "Bearer a b", "Bearer a,Bearer b", "sk_x", "\tBearer\tx"])(
    "is not read from `%s`",
    async (authorization) => {
      const { url } = await world();
      expect(await answerTo(`${url}/threads/t`, { headers: { authorization } })).toMatchObject({
        status: 401,
      });
    },
  );

  test("that is revoked stops working within seconds, even while it is in use", async () => {
    const { make, ask, store, advance } = await world();
    const { key, record } = await make();
    expect((await ask(key)).status).toBe(200);
    advance(2_000);
    expect((await ask(key)).status).toBe(200);
    await store.revoke(record.id);
    let worked = 0;
    for (; worked < SECONDS && (await ask(key)).status === 200; worked += 500) advance(500);
    expect(worked).toBeLessThan(SECONDS);
    expect((await ask(key)).status).toBe(401);
  });

  test("that expires works until then, even while it is in use", async () => {
    const { make, ask, advance } = await world();
    const { key } = await make({ expires_at: new Date(START + 1000).toISOString() });
    advance(999);
    expect((await ask(key)).status).toBe(200);
    advance(1);
    expect((await ask(key)).status).toBe(401);
  });

  test("of a thousand each belongs to its own user", async () => {
    const { make, ask } = await world();
    const keys = await Promise.all(
      Array.from({ length: 1_000 }, async (_, n) => ({ user: `u${n}`, ...(await make({ user: `u${n}` })) })),
    );
    for (let at = 0; at < keys.length; at += 50)
      await Promise.all(
        keys.slice(at, at + 50).map(async ({ key, user }) => {
          expect((await ask(key)).body).toMatchObject({ user });
        }),
      );
  });
});

describe("the store of keys", () => {
  /** Counts what the store is asked. */
  const counted = () => {
    const asked = new Map<string, number>();
    const wrap = (store: ApiKeyStore): ApiKeyStore => ({
      ...store,
      find: (id) => {
        asked.set(id, (asked.get(id) ?? 0) + 1);
        return store.find(id);
      },
    });
    return { asked, wrap };
  };

  test("is called once for many simultaneous requests", async () => {
    const { asked, wrap } = counted();
    const { make, ask } = await world(wrap);
    const { key, record } = await make();
    await Promise.all(Array.from({ length: 30 }, () => ask(key)));
    await ask(key);
    expect(asked.get(record.id)).toBe(1);
  });

  test("is not called again for keys in use, however many are invented meanwhile", async () => {
    const { asked, wrap } = counted();
    const store = wrap(memoryApiKeys(() => START));
    const authenticate = authenticateApiKey(
      cachedKeys(store, () => START),
      () => START,
    );
    const about = { tenant: "acme", user: "ada", scopes: ["read" as const], name: "" };
    const { key, record } = await issueApiKey(store, about);
    const send = (text: string) =>
      // Everything that is looked at.
      authenticate({ raw: { rawHeaders: ["X-API-Key", text] } } as never).catch(() => undefined);
    await send(key);
    for (let n = 0; n < 20_000; n++) await send(`sk_${String(n).padStart(22, "0")}_${"x".repeat(43)}`);
    expect(await send(key)).toMatchObject({ user: "ada" });
    expect(asked.get(record.id)).toBe(1);
  });

  test("that cannot be reached makes the request unavailable instead of refused or accepted", async () => {
    let isDown = true;
    const { make, ask } = await world((store) => ({
      ...store,
      async find(id) {
        if (isDown) throw new AppError("unavailable", "The store cannot be reached.");
        return store.find(id);
      },
    }));
    const { key } = await make();
    expect(await ask(key)).toMatchObject({ status: 503, body: { code: "unavailable" }, challenge: null });
    isDown = false;
    expect((await ask(key)).status).toBe(200);
  });
});

/** With headers as they are, also repeated ones. */
async function sent(port: number, headers: readonly (string | undefined)[]) {
  const all = ["host", "localhost", "connection", "close", ...headers].map(String);
  const outgoing = request({ port, host: "127.0.0.1", path: "/threads/t", headers: all });
  return new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
    outgoing.on("error", reject);
    outgoing.on("response", async (response) =>
      resolve({ status: response.statusCode, body: await text(response) }),
    );
    outgoing.end();
  });
}
