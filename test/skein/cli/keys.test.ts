import { describe, expect, test } from "vitest";
import { readApiKey } from "../../../src/server/auth/api-keys.ts";
import { createKey, listKeys, revokeKey } from "../../../src/skein/cli/keys.ts";
import { date } from "../../../src/skein/cli/locale.ts";
import { memoryApiKeys } from "../../support/api-keys.ts";

const MANY = 2_500;

describe("skein keys create", () => {
  test("prints only the key on standard output, and its owner next to it", async () => {
    const store = memoryApiKeys();
    const { output, note } = await createKey(store, {
      ...{ tenant: "acme", user: "ada", scopes: "run,read,run", name: "her laptop", expires: "90d" },
    });
    const { id = "" } = readApiKey(output) ?? {};
    const found = await store.find(id);
    expect(found).toMatchObject({
      ...{ id, tenant: "acme", user: "ada", scopes: ["run", "read"], name: "her laptop" },
      expires_at: expect.stringMatching(/^\d{4}-/),
    });
    expect(note).toContain(id);
    expect(note).toContain(`valid until ${date(found?.expires_at ?? "")}.`);
    expect(note).not.toContain(output);
  });

  test("requires only a user", async () => {
    const items = await (async () => {
      const store = memoryApiKeys();
      await createKey(store, { user: "ada" });
      return store.list();
    })();
    expect(items).toMatchObject([{ tenant: "default", user: "ada", scopes: ["read", "run"], name: "" }]);
    expect(items[0]).not.toHaveProperty("expires_at");
  });

  test.each([
    ["90d", 90 * 24],
    ["12h", 12],
  ])("accepts %s from now as an expiry", async (expires, hours) => {
    const store = memoryApiKeys();
    const before = Date.now();
    await createKey(store, { user: "ada", expires });
    const [key] = await store.list();
    const end = Date.parse(key?.expires_at ?? "") - hours * 3_600_000;
    expect(end).toBeGreaterThanOrEqual(before);
    expect(end).toBeLessThanOrEqual(Date.now());
  });

  test.each([
    ["no user", {}, /--user: is missing/],
    ["an empty user", { user: "" }, /--user: must be 1 to 256 characters/],
    ["a user with a line break", { user: "ada\nadmin" }, /--user/],
    ["a tenant with a space", { user: "ada", tenant: "a b" }, /--tenant/],
    ["a scope that is none", { user: "ada", scopes: "read,rnu" }, /--scopes.*did you mean `run`/],
    ["no scope", { user: "ada", scopes: "" }, /--scopes/],
    ["a name of two lines", { user: "ada", name: "a\nb" }, /--name/],
    ["an end that is past", { user: "ada", expires: "2020-01-01" }, /--expires: must be in the future/],
    ["an end at once", { user: "ada", expires: "0d" }, /--expires/],
    ["an end that is none", { user: "ada", expires: "soon" }, /--expires/],
  ])("refuses %s", async (_, options, words) => {
    const store = memoryApiKeys();
    await expect(createKey(store, options)).rejects.toMatchObject({
      code: "invalid_request",
      message: expect.stringMatching(words),
    });
    expect(await store.list()).toEqual([]);
  });
});

const idOf = (key: string) => readApiKey(key)?.id ?? "";

describe("skein keys list", () => {
  test("shows all keys with their status, and no secret", async () => {
    const store = memoryApiKeys();
    const { output: key } = await createKey(store, { user: "ada", name: "valid" });
    const revoked = await createKey(store, { user: "bob", name: "revoked" });
    await revokeKey(store, idOf(revoked.output));
    const about = { tenant: "t", user: "eve", scopes: ["read" as const], name: "old", hash: "" };
    await store.create({ ...about, id: "old", expires_at: "2020-01-01T00:00:00.000Z" });
    const { output } = await listKeys(store, {});
    const lines = output.split("\n");
    expect(lines).toHaveLength(4);
    expect(lines[0]).toMatch(/^ID +TENANT +USER +SCOPES +CREATED +STATE +NAME$/);
    const place = lines[0]?.indexOf("SCOPES");
    for (const line of lines.slice(1)) expect(line.slice(place)).toMatch(/^read/);
    expect(output).toMatch(/ada .* valid +valid$/m);
    expect(output).toMatch(/bob .* revoked \d{4}\S+ +revoked$/m);
    expect(output).toMatch(/eve .* expired 2020\S+ +old$/m);
    expect(output).not.toContain(key.slice(-43));
    expect((await listKeys(store, { tenant: "t" })).output.split("\n")).toHaveLength(2);
  });

  test("lists more than one page", async () => {
    const store = memoryApiKeys();
    const about = { tenant: "t", user: "u", scopes: ["read" as const], name: "", hash: "" };
    for (let n = 0; n < MANY; n++) await store.create({ ...about, id: `k${n}` });
    expect((await listKeys(store, {})).output.split("\n")).toHaveLength(MANY + 1);
  });
});

describe("skein keys revoke", () => {
  test.each([
    ["its id", idOf],
    ["the key itself, as it leaked", (key: string) => key],
  ])("accepts %s", async (_, naming) => {
    const store = memoryApiKeys();
    const { output: key } = await createKey(store, { user: "ada" });
    const { output } = await revokeKey(store, naming(key));
    expect(output).not.toContain(key);
    expect(await store.list()).toMatchObject([{ revoked_at: expect.any(String) }]);
  });

  test("refuses an invalid key", async () => {
    const store = memoryApiKeys();
    await expect(revokeKey(store, "x")).rejects.toMatchObject({ code: "not_found" });
  });
});
