// Deletions of accounts to which a person has just agreed: what they end, what they revoke, and what others learn of them.

import { pino } from "pino";
import { expect, test } from "vitest";
import { deployment, serve } from "../support/account-server.ts";
import { authorizationServer, CLIENT } from "../support/authorization-server.ts";
import { connectAt } from "../support/connecting.ts";
import { holdingKey } from "../support/holding-key.ts";

/** Holds the process that stores the tokens of a consent, from the `first` time on. */
function holdingConsent(first = 1) {
  let stored = 0;
  return holdingKey((context) => context.startsWith('["connections"') && ++stored === first);
}

function keptLog() {
  const lines: string[] = [];
  const logger = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
  const failures = () =>
    lines
      .filter((line) => line.includes("could not revoke the tokens of an account"))
      .map((line) => JSON.parse(line));
  return { logger, failures };
}

const REFUSED = { tenant: "acme", user: "ada", connection: "calendar", reason: "its issuer answered 503" };

test("a deletion says that the tokens of an earlier consent are not revoked, and the log says why", async () => {
  const parts = await deployment();
  const { plugins, held, release } = holdingConsent(2);
  const { logger, failures } = keptLog();
  const { as } = await serve(parts, { plugins, logger });
  const ada = as("ada");
  const other = await authorizationServer();
  const { access_token, refresh_token } = await other.grant();
  await ada.client.connections.put("calendar", {
    ...{ type: "mcp_oauth", mcp_server_url: parts.calendar.url, access_token },
    refresh: {
      ...{ client_id: CLIENT.client_id, refresh_token, token_endpoint: `${other.url}/token` },
      token_endpoint_auth: { type: "client_secret_basic", client_secret: CLIENT.client_secret },
      revocation_endpoint: `${other.url}/token/revocation`,
    },
  });
  const connecting = connectAt(await ada.address());
  await held;
  parts.issuer.state.revokes = async () => 503;
  expect(await ada.client.connections.delete("calendar")).toEqual({ is_revoked: false });
  expect(other.revocations).toHaveLength(1);
  expect(failures()).toMatchObject([REFUSED]);
  release();
  expect((await connecting).status).toBe(404);
});

test("the log says why the tokens of a consent are not revoked that came too late", async () => {
  const parts = await deployment();
  const { plugins, held, release } = holdingConsent();
  const { logger, failures } = keptLog();
  const { as } = await serve(parts, { plugins, logger });
  const ada = as("ada");
  const early = connectAt(await ada.address());
  await held;
  await connectAt(await ada.address());
  parts.issuer.state.revokes = async () => 503;
  release();
  await early;
  await expect.poll(failures).toMatchObject([REFUSED]);
});

test("the log says why the tokens of a consent are not revoked that arrive after a deletion", async () => {
  const parts = await deployment();
  const { logger, failures } = keptLog();
  const { as } = await serve(parts, { logger });
  const ada = as("ada");
  const { state, tokenRequests } = parts.issuer;
  const hold = Promise.withResolvers<void>();
  Object.assign(state, { pause: hold.promise, revokes: async () => 503 });
  const connecting = connectAt(await ada.address());
  await expect.poll(() => tokenRequests.length).toBe(1);
  await expect(ada.client.connections.delete("calendar")).rejects.toThrow("no connection");
  hold.resolve();
  expect((await connecting).status).toBe(404);
  expect(failures()).toMatchObject([REFUSED]);
});

test("a consent whose account has no place in the vault leaves no tokens at the issuer, and nothing here", async () => {
  const parts = await deployment();
  const { as } = await serve(parts, {
    plugins: holdingKey(() => false).plugins,
    config: { vault: { connections: 1 } },
  });
  const ada = as("ada");
  const token = { mcp_server_url: "https://search.example.com/mcp", token: "t" };
  await ada.client.connections.put("search", { type: "static_bearer", ...token });
  expect((await connectAt(await ada.address())).status).toBe(429);
  await expect.poll(() => parts.issuer.revocations).toHaveLength(1);
  expect(await ada.exported("connection_request")).toEqual([]);
});

test("a server that stops during a revocation ends its runs and requests first, and then waits for the issuer", async () => {
  const parts = await deployment();
  const { app, url, as } = await serve(parts);
  const ada = as("ada");
  await connectAt(await ada.address());
  const answer = Promise.withResolvers<undefined>();
  const asked = Promise.withResolvers<void>();
  parts.issuer.state.revokes = () => {
    asked.resolve();
    return answer.promise;
  };
  const deleting = ada.client.connections.delete("calendar").catch(() => {});
  await asked.promise;
  const closing = app.close();
  const isServing = () =>
    fetch(`${url}/health`).then(
      () => true,
      () => false,
    );
  await expect.poll(isServing).toBe(false);
  // The server waits a second for its last answers. Without waiting for the issuer, it would stop before this.
  setTimeout(() => answer.resolve(undefined), 2_000);
  await closing;
  expect(parts.issuer.revocations).toHaveLength(1);
  await deleting;
});

test("a deletion that `If-Match` refuses ends no consent", async () => {
  const parts = await deployment();
  const { plugins, held, release } = holdingConsent(2);
  const { as, url } = await serve(parts, { plugins });
  const [ada, bob] = [as("ada"), as("bob")];
  const refused = async ({ headers }: typeof ada) => {
    const path = `${url}/me/connections/calendar`;
    return (await fetch(path, { method: "DELETE", headers: { ...headers, "if-match": '"old"' } })).status;
  };
  await connectAt(await bob.address());
  const connecting = connectAt(await ada.address());
  await held;
  // There is no connection yet, and then an older one.
  expect([await refused(ada), await refused(bob)]).toEqual([412, 412]);
  release();
  expect((await connecting).status).toBe(200);
  expect(await ada.connections()).toMatchObject([{ id: "calendar" }]);
  expect(parts.issuer.revocations).toEqual([]);
});

test("the trail says who ended a consent by deleting an account that was not stored yet", async () => {
  const parts = await deployment();
  const { plugins, held, release } = holdingConsent();
  const { as } = await serve(parts, { plugins, per: "tenant", config: { auth: EXTERNAL } });
  const [ada, operator] = [as("ada"), as("root", "skein", "read,operator")];
  const connections = operator.client.admin.connections;
  const entries = async (action: string) => (await ada.client.admin.audit({ action })).items;
  const { url } = await ada.client.admin.connections.authorize("calendar");
  const connecting = connectAt(url);
  await held;
  await expect(connections.delete("calendar", { tenant: "acme" })).rejects.toThrow("no connection");
  release();
  expect((await connecting).status).toBe(404);
  // This one finds nothing to end.
  await expect(ada.client.admin.connections.delete("calendar")).rejects.toThrow("no connection");
  await expect.poll(() => entries("connection.delete")).toHaveLength(1);
  expect(await entries("connection.end_consents")).toMatchObject([
    {
      actor: { type: "operator", id: "root", tenant: "skein" },
      target: { type: "connection", id: "calendar" },
    },
  ]);
});

const EXTERNAL = { scheme: "header", trusted_proxies: ["127.0.0.1"], external_operators: true };

test("a client that leaves during a deletion leaves no tokens at the issuer", async () => {
  const parts = await deployment();
  const { as, url } = await serve(parts);
  const ada = as("ada");
  await connectAt(await ada.address());
  const [asked, hold] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  parts.issuer.state.revokes = async () => {
    asked.resolve();
    await hold.promise;
    return undefined;
  };
  const leaving = new AbortController();
  const { signal } = leaving;
  const deleting = fetch(`${url}/me/connections/calendar`, {
    method: "DELETE",
    headers: ada.headers,
    signal,
  });
  await asked.promise;
  leaving.abort();
  await expect(deleting).rejects.toThrow();
  expect(await ada.connections()).toEqual([]);
  hold.resolve();
  await expect.poll(() => parts.issuer.revocations).toHaveLength(1);
});

test("a user who is deleted while the tokens of a consent are stored leaves none at the issuer", async () => {
  const parts = await deployment();
  const { plugins, held, release } = holdingConsent();
  const { as, url } = await serve(parts, { plugins });
  const [eve, admin] = [as("eve"), as("ada")];
  const connecting = connectAt(await eve.address());
  await held;
  const { headers } = admin;
  const gone = await fetch(`${url}/admin/tenants/acme/users/eve`, { method: "DELETE", headers });
  expect(gone.status).toBe(200);
  expect(parts.issuer.revocations).toHaveLength(1);
  release();
  expect((await connecting).status).toBe(404);
  expect(await eve.connections()).toEqual([]);
});
