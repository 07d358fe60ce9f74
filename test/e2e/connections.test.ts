// Credentials that users and tenants hand in for other services.

import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { expect, test } from "vitest";
import { authorizationServer, CLIENT, RESOURCE } from "../support/authorization-server.ts";
import { type ServerOptions, startServer, temporaryFolder } from "../support/server.ts";

const TOKEN = "a-token-that-no-one-may-read";
const BEARER = { type: "static_bearer", mcp_server_url: RESOURCE, token: TOKEN };
const newKey = () => randomBytes(32).toString("base64");

interface Answer {
  readonly items: readonly Answer[];
  readonly [about: string]: unknown;
}

async function serve(options: ServerOptions = {}) {
  const lines: string[] = [];
  const { url, app } = await startServer({
    logger: pino({ level: "trace" }, { write: (line: string) => void lines.push(line) }),
    ...options,
    config: {
      auth: { scheme: "header", trusted_proxies: ["127.0.0.1"], external_operators: true },
      http_tools: { allow: "127.0.0.1" },
      vault: { key: newKey() },
      ...options.config,
    },
  });
  const as = (user: string, tenant = "acme", scopes = "read,run,admin") => {
    const headers = { "x-skein-tenant": tenant, "x-skein-user": user, "x-skein-scopes": scopes };
    return async (method: string, path: string, body?: object, more: Record<string, string> = {}) => {
      const response = await fetch(url + path, {
        method,
        headers: { ...headers, ...more, ...(body ? { "content-type": "application/json" } : {}) },
        body: body ? JSON.stringify(body) : null,
      });
      const text = await response.text();
      const answer = (text.startsWith("{") && !text.includes("\n{") ? JSON.parse(text) : {}) as Answer;
      return { status: response.status, etag: response.headers.get("etag") ?? "", text, answer };
    };
  };
  return { app, lines, as };
}

test("a credential can be written but never read: not in any response, export, log line, file or backup", async () => {
  const dir = await temporaryFolder();
  const { as, lines } = await serve({ dir, config: { store: "sqlite" } });
  const ada = as("ada");
  const operator = as("root", "acme", "operator");
  const variable = {
    type: "environment_variable",
    ...{ secret_name: "API_TOKEN", secret_value: TOKEN },
    networking: { type: "limited", allowed_hosts: ["api.example.com"] },
  };
  const answers = [
    await ada("PUT", "/me/connections/calendar", BEARER),
    await ada("PUT", "/me/connections/calendar", { ...BEARER, token: `${TOKEN}2` }),
    await ada("PUT", "/me/connections/variable", variable),
    await ada("GET", "/me/connections/calendar"),
    await ada("GET", "/me/connections"),
    await operator("GET", "/admin/tenants/acme/users/ada/export"),
    await operator("POST", "/admin/backup"),
    // The value of a wrong member is not repeated.
    await ada("PUT", "/me/connections/wrong", { ...BEARER, token: `${TOKEN} with a space` }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([201, 200, 201, 200, 200, 200, 200, 400]);
  const [, , , shown, , exported] = answers;
  expect(shown?.answer).toMatchObject({ id: "calendar", type: "static_bearer", mcp_server_url: RESOURCE });
  expect(exported?.text).toContain('"connection"');
  const files = await readdir(dir, { recursive: true, withFileTypes: true });
  const contents = await Promise.all(
    files.filter((each) => each.isFile()).map((each) => readFile(join(each.parentPath, each.name), "latin1")),
  );
  expect(contents.some((text) => text.includes("calendar"))).toBe(true);
  for (const text of [...answers.map((each) => each.text), ...lines, ...contents])
    expect(text).not.toContain(TOKEN);
});

test("another user can neither read, replace nor delete them, and only admins can use a tenant's", async () => {
  const { as } = await serve();
  await as("ada")("PUT", "/me/connections/calendar", BEARER);
  await as("ada")("PUT", "/admin/connections/shared", BEARER);
  for (const other of [as("eve"), as("ada", "other")]) {
    expect((await other("GET", "/me/connections")).answer.items).toEqual([]);
    expect((await other("GET", "/me/connections/calendar")).status).toBe(404);
    expect((await other("DELETE", "/me/connections/calendar")).status).toBe(404);
  }
  expect((await as("eve", "acme", "read,run")("GET", "/admin/connections")).status).toBe(403);
  expect((await as("ada", "other")("GET", "/admin/connections?tenant=acme")).status).toBe(404);
  expect((await as("bob")("GET", "/admin/connections")).answer.items).toMatchObject([{ id: "shared" }]);
  expect((await as("ada")("GET", "/me/connections")).answer.items).toMatchObject([{ id: "calendar" }]);
});

test("a deleted connection is revoked at its issuer, and so are a deleted user's", async () => {
  const [dir, key] = [await temporaryFolder(), newKey()];
  const before = await serve({ dir, config: { store: "sqlite", vault: { key } } });
  let ada = before.as("ada");
  const issuer = await authorizationServer();
  const connect = async (id: string) => {
    const { access_token, refresh_token } = await issuer.grant();
    const answer = await ada("PUT", `/me/connections/${id}`, {
      ...{ type: "mcp_oauth", mcp_server_url: RESOURCE, access_token },
      refresh: {
        ...{ client_id: CLIENT.client_id, refresh_token, token_endpoint: `${issuer.url}/token` },
        token_endpoint_auth: { type: "client_secret_basic", client_secret: CLIENT.client_secret },
        revocation_endpoint: `${issuer.url}/token/revocation`,
      },
    });
    expect(answer.status).toBe(201);
    return access_token;
  };
  const [first, second] = [await connect("first"), await connect("second")];
  await before.app.close();
  const vault = { key: newKey(), previous_keys: [key] };
  const { as } = await serve({ dir, config: { store: "sqlite", vault } });
  ada = as("ada");
  expect((await ada("DELETE", "/me/connections/first")).answer).toEqual({ is_revoked: true });
  expect([await issuer.isActive(first), await issuer.isActive(second)]).toEqual([false, true]);
  const operator = as("root", "acme", "operator");
  expect((await operator("DELETE", "/admin/tenants/acme/users/ada")).status).toBe(200);
  expect(await issuer.isActive(second)).toBe(false);
  expect((await ada("GET", "/me/connections")).answer.items).toEqual([]);
});

test("a write based on an older version changes nothing", async () => {
  const { as } = await serve();
  const ada = as("ada");
  const { etag } = await ada("PUT", "/me/connections/calendar", BEARER);
  await ada("PUT", "/me/connections/calendar", { ...BEARER, mcp_server_url: "https://new.example.com/" });
  const stale = { "if-match": etag };
  expect((await ada("PUT", "/me/connections/calendar", BEARER, stale)).status).toBe(412);
  expect((await ada("DELETE", "/me/connections/calendar", undefined, stale)).status).toBe(412);
  const { answer } = await ada("GET", "/me/connections/calendar");
  expect(answer.mcp_server_url).toBe("https://new.example.com/");
});

test("a server without a key stores nothing and names the missing setting", async () => {
  const { as } = await serve({ config: { vault: {} } });
  const refused = await as("ada")("PUT", "/me/connections/calendar", BEARER);
  expect(refused.status).toBe(400);
  expect(refused.answer.detail).toContain("VAULT_KEY");
  expect((await as("ada")("GET", "/me/connections")).answer.items).toEqual([]);
});

test("a user's number of connections is limited", async () => {
  const { as } = await serve({ config: { vault: { key: newKey(), connections: 2 } } });
  const ada = as("ada");
  const statuses = ["a", "b", "c"].map((id) => ada("PUT", `/me/connections/${id}`, BEARER));
  expect((await Promise.all(statuses)).map(({ status }) => status).sort()).toEqual([201, 201, 429]);
});
