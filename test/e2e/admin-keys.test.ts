// API keys, managed over HTTP.

import { join } from "node:path";
import { expect, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { openSqliteKeyFile } from "../../src/engine/stores/sqlite/key-file.ts";
import { createApiKeys, issueApiKey, newApiKey } from "../../src/server/auth/api-keys.ts";
import { startServer } from "../support/server.ts";

/** A server with keys, and its clients: `root` is an operator, `admin` the admin of the tenant `acme`. */
async function serve() {
  const { key } = newApiKey();
  const { url, dir } = await startServer({ config: { auth: { scheme: "api_key", bootstrap_key: key } } });
  const as = (own: string) => createClient({ baseUrl: url, headers: { authorization: `Bearer ${own}` } });
  const { documents, close } = openSqliteKeyFile(join(dir, "data"));
  const about = { tenant: "acme", user: "boss", scopes: ["admin" as const], name: "" };
  const made = await issueApiKey(createApiKeys(documents), about);
  close();
  return { as, root: as(key), admin: as(made.key) };
}

const refusal = (work: Promise<unknown>) =>
  work.then(
    () => "none",
    ({ status, message }) => `${status} ${message}`,
  );

test("a key that an admin creates works for its user until it is revoked, and is shown once", async () => {
  const { as, admin } = await serve();
  const made = await admin.admin.createKey({ user: "ada", name: "Laptop" });
  expect(made).toMatchObject({ tenant: "acme", user: "ada", scopes: ["read", "run"], name: "Laptop" });
  expect(await as(made.key).me()).toMatchObject({ user: "ada", scopes: ["read", "run"] });

  const listed = await admin.admin.keys({ user: "ada" });
  expect(listed.items.map(({ id }) => id)).toEqual([made.id]);
  expect(JSON.stringify(listed)).not.toContain(made.key.slice(-43));
  expect(JSON.stringify(listed)).not.toContain("hash");

  expect(await admin.admin.revokeKey(made.id)).toMatchObject({ id: made.id, revoked_at: expect.any(String) });
  await expect
    .poll(() =>
      as(made.key)
        .me()
        .then(
          () => 200,
          ({ status }) => status,
        ),
    )
    .toBe(401);
});

test("an admin cannot access another tenant's keys or create keys that manage", async () => {
  const { as, root, admin } = await serve();
  const ofOther = await root.admin.createKey({ tenant: "other", user: "eve" });
  expect((await admin.admin.keys()).items.map(({ user }) => user)).toEqual(["boss"]);
  expect((await admin.admin.keys({ tenant: "other" })).items).toEqual([]);
  expect(await refusal(admin.admin.createKey({ tenant: "other", user: "eve" }))).toMatch(/^404 /);
  expect(await refusal(admin.admin.revokeKey(ofOther.id))).toBe(`404 There is no API key \`${ofOther.id}\`.`);
  expect(await refusal(admin.admin.revokeKey("nothing"))).toBe("404 There is no API key `nothing`.");
  expect(await as(ofOther.key).me()).toMatchObject({ tenant: "other", user: "eve" });

  const managing = { user: "ada", scopes: ["admin" as "read"] };
  expect(await refusal(admin.admin.createKey(managing))).toMatch(/^400 .*scopes/);
  expect(await refusal(admin.admin.createKey({ user: "ada", expires_at: "2001-01-01T00:00:00Z" }))).toMatch(
    /^400 .*must be in the future/,
  );
  const { key } = await admin.admin.createKey({ user: "ada" });
  expect(await refusal(as(key).admin.keys())).toMatch(/^403 /);
});

test("keys are listed newest first, page by page", async () => {
  const { admin } = await serve();
  const made: string[] = [];
  for (const user of ["ada", "bob", "eve"]) made.unshift((await admin.admin.createKey({ user })).id);
  const first = await admin.admin.keys({ limit: 2 });
  expect(first.items.map(({ id }) => id)).toEqual(made.slice(0, 2));
  const second = await admin.admin.keys({ limit: 2, cursor: first.next_cursor });
  expect(second.items.map(({ user }) => user)).toEqual(["ada", "boss"]);
  expect(second.next_cursor).toBeUndefined();
  expect(await refusal(admin.admin.keys({ cursor: "AAAA" }))).toMatch(
    /^400 .*is not a valid cursor for this list/,
  );
});
