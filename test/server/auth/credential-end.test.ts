import { expect, test } from "vitest";
import { AppError } from "../../../src/agent/core/errors.ts";
import type { KeptApiKey } from "../../../src/server/auth/api-keys.ts";
import { createCredentials } from "../../../src/server/auth/credential-end.ts";

const OFTEN_MS = 5;
const KEY: KeptApiKey = {
  ...{ id: "key", tenant: "acme", user: "ada", scopes: ["read"], name: "", hash: "" },
  created_at: "2026-11-21T10:00:00.000Z",
};
const REVOKED = { ...KEY, revoked_at: "2026-11-21T11:00:00.000Z" };

test("a key is looked up once for everything that it opened, until the last of it is closed", async () => {
  let asked = 0;
  const find = async () => (++asked < 2 ? KEY : REVOKED);
  const credentials = createCredentials(find, { warn() {} }, Date.now, OFTEN_MS);
  const ended: unknown[] = [];
  for (let n = 0; n < 1_000; n++) credentials.watch({ api_key: "key" }, ({ code }) => ended.push(code));
  credentials.watch({ api_key: "key" }, () => expect.fail("It was closed."))();
  await expect.poll(() => ended.length).toBe(1_000);
  expect(new Set(ended)).toEqual(new Set(["credentials_revoked"]));
  expect(asked).toBe(2);
});

test.each([
  [REVOKED, "credentials_revoked", "The API key `key` was revoked."],
  [
    { ...KEY, expires_at: "2026-11-21T11:00:00.000Z" },
    "credentials_expired",
    "The API key `key` has expired.",
  ],
])("work without a request learns which key has ended", async (key, code, message) => {
  const credentials = createCredentials(async () => key, { warn() {} });
  expect(await credentials.endOfKey("key")).toMatchObject({ code, message });
});

test("while the key store fails, nothing is ended, and the log reports it once", async () => {
  let asked = 0;
  const log: unknown[] = [];
  const find = async () => {
    if (++asked < 3) throw new AppError("unavailable", "The store cannot be reached.");
    return undefined;
  };
  const credentials = createCredentials(find, { warn: (details) => log.push(details) }, Date.now, OFTEN_MS);
  const { promise, resolve } = Promise.withResolvers<AppError>();
  credentials.watch({ api_key: "key" }, resolve);
  expect(await promise).toMatchObject({ code: "credentials_revoked" });
  expect(asked).toBe(3);
  expect(log).toMatchObject([{ err: { code: "unavailable" } }]);
});
