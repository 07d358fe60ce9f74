// Access tokens that end: by which process they are renewed, and what becomes of them when something fails.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import type { Documents } from "../../../src/agent/core/documents.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { localWrapper } from "../../../src/engine/vault/cipher.ts";
import { createVault, type Vault } from "../../../src/engine/vault/index.ts";
import { hostList } from "../../../src/lib/hosts.ts";
import { createPublicFetch } from "../../../src/lib/ssrf-safe-fetch/index.ts";
import {
  type AuthorizationServer,
  authorizationServer,
  CLIENT,
  RESOURCE,
} from "../../support/authorization-server.ts";

const ADA = { tenant: "acme", user: "ada" };
const key = () => localWrapper(randomBytes(32).toString("base64"));

/** Long past, also for a store whose clock stands still while the machine is busy. */
const expired = () => new Date(Date.now() - 3_600_000).toISOString();

/** A store whose clock only a test moves on, and processes that share it. */
function deployment() {
  let time = Date.now();
  const stores = createMemoryStores({ now: () => time });
  onTestFinished(() => stores.close());
  const current = key();
  const lines: object[] = [];
  const log = (line: object, text: string) => void lines.push({ ...line, text });
  const replica = ({ key = current, previousKeys = [current], documents = stores.documents } = {}): Vault => {
    const vault = createVault({
      ...{ documents, key, previousKeys, most: 10 },
      logger: { info: log, warn: log, error: log, debug: log } as never,
      fetch: createPublicFetch({ allow: hostList("127.0.0.1") }),
      onUse() {},
      onConsentsEnded() {},
    });
    vault.open();
    onTestFinished(() => vault.close());
    return vault;
  };
  const pass = (ms: number) => {
    time += ms;
  };
  return { documents: stores.documents as Documents, lines, replica, pass };
}

/** Connects an account whose access token has expired. */
async function connect(vault: Vault, issuer: AuthorizationServer) {
  const tokens = await issuer.grant();
  await vault.put(ADA, "calendar", {
    ...{ type: "mcp_oauth", mcp_server_url: RESOURCE, access_token: tokens.access_token },
    expires_at: expired(),
    refresh: {
      ...{ client_id: CLIENT.client_id, refresh_token: tokens.refresh_token, resource: RESOURCE },
      token_endpoint: `${issuer.url}/token`,
      token_endpoint_auth: { type: "client_secret_basic", client_secret: CLIENT.client_secret },
      revocation_endpoint: `${issuer.url}/token/revocation`,
    },
  });
  issuer.tokenRequests.splice(0);
  return tokens;
}

const { signal } = new AbortController();
const access = (vault: Vault, refused?: string) => vault.access(ADA, "calendar", { signal, refused });

/** Begins a renewal, which the issuer answers when `answer` is called. */
async function renewal(vault: Vault, issuer: AuthorizationServer) {
  const gate = Promise.withResolvers<void>();
  issuer.state.pause = gate.promise;
  const renewing = access(vault);
  await expect.poll(() => issuer.tokenRequests.length).toBe(1);
  return { renewing, answer: gate.resolve };
}

const generationOf = (each: Awaited<ReturnType<typeof access>>) =>
  each.state === "open" ? each.generation : "";

test("thirty callers in three processes renew an access token once, and all get the new one", async () => {
  const { replica } = deployment();
  const issuer = await authorizationServer();
  const vaults = [replica(), replica(), replica()];
  const before = await connect(vaults[0] as Vault, issuer);
  const answers = await Promise.all(
    vaults.flatMap((vault) => Array.from({ length: 10 }, () => access(vault))),
  );
  expect(issuer.tokenRequests).toEqual([{ grant_type: "refresh_token", status: 200 }]);
  const values = new Set(answers.map((each) => each.state === "open" && each.value));
  expect(values.size).toBe(1);
  const [value] = [...values];
  expect(value).not.toBe(before.access_token);
  expect(await issuer.isActive(String(value))).toBe(true);
});

test("a grant survives many renewals, each with a new refresh token", async () => {
  const { replica, pass } = deployment();
  const issuer = await authorizationServer();
  const vaults = [replica(), replica()];
  await connect(vaults[0] as Vault, issuer);
  const seen = new Set<string>();
  for (let round = 0; round < 6; round++) {
    const answer = await access(vaults[round % 2] as Vault);
    seen.add(answer.state === "open" ? answer.value : answer.state);
    pass(3_600_000);
  }
  expect(seen.size).toBe(6);
  expect(issuer.tokenRequests.map(({ status }) => status)).toEqual(Array(6).fill(200));
});

test("a token that its receiver refused is renewed once, even if four callers report it", async () => {
  const { replica, pass } = deployment();
  const issuer = await authorizationServer();
  const vaults = [replica(), replica()];
  await connect(vaults[0] as Vault, issuer);
  const first = await access(vaults[0] as Vault);
  const { generation } = first as { generation: string };
  pass(5000);
  const answers = await Promise.all([...vaults, ...vaults].map((vault) => access(vault, generation)));
  expect(issuer.tokenRequests).toHaveLength(2);
  const generations = new Set(answers.map((each) => each.state === "open" && each.generation));
  expect(generations.size).toBe(1);
  expect(generations).not.toContain(generation);
});

test("a token that lives for a few seconds is used for half of them", async () => {
  const { replica, pass } = deployment();
  const issuer = await authorizationServer();
  issuer.state.lifetime = 20;
  const vault = replica();
  await connect(vault, issuer);
  const [first, second] = [await access(vault), await access(vault)];
  expect(first).toEqual(second);
  pass(11_000);
  issuer.state.failsWith = 503;
  // The issuer is unavailable, and the token has not expired yet.
  expect(generationOf(await access(vault))).toBe(generationOf(first));
  issuer.state.failsWith = undefined;
  pass(3_000);
  const third = await access(vault);
  expect([third.state, third]).toEqual([
    "open",
    expect.not.objectContaining({ generation: generationOf(first) }),
  ]);
  expect(issuer.tokenRequests).toHaveLength(3);
});

test.each([
  { answer: "a lifetime beyond all calendars", more: { expires_in: 9e18 } },
  { answer: "no refresh token, in words", more: { refresh_token: null, expires_in: "3600" } },
])("an issuer's answer $answer loses no grant", async ({ more }) => {
  const { replica, pass } = deployment();
  const seen: string[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += String(piece);
    seen.push(new URLSearchParams(body).get("refresh_token") ?? "");
    response.end(JSON.stringify({ access_token: `access-${seen.length}`, ...more }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const vault = replica();
  await vault.put(ADA, "calendar", {
    ...{ type: "mcp_oauth", mcp_server_url: RESOURCE, access_token: "old" },
    expires_at: expired(),
    refresh: {
      ...{ client_id: "me", refresh_token: "mine", token_endpoint_auth: { type: "none" } },
      token_endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`,
    },
  });
  expect(await access(vault)).toMatchObject({ state: "open", value: "access-1" });
  pass(3_590_000);
  await access(vault);
  expect(seen.every((token) => token === "mine")).toBe(true);
});

test("a connection that was deleted and created again is a new one", async () => {
  const { replica } = deployment();
  const vault = replica();
  const spec = { type: "static_bearer" as const, mcp_server_url: RESOURCE };
  await vault.put(ADA, "calendar", { ...spec, token: "first" });
  const first = await access(vault);
  await vault.delete(ADA, "calendar", { by: ADA });
  await vault.put(ADA, "calendar", { ...spec, token: "second" });
  expect(await access(vault, generationOf(first))).toMatchObject({ state: "open", value: "second" });
});

test.each([
  { what: "the answer of the store", failing: "store" },
  { what: "the key of the vault", failing: "key" },
])("a grant survives if $what fails once after the issuer has answered", async ({ failing }) => {
  const { replica, documents } = deployment();
  const issuer = await authorizationServer();
  const inner = key();
  let fails = false;
  const failOnce = (name: string) => {
    if (!fails || name !== failing) return;
    fails = false;
    throw new Error("It failed once.");
  };
  const failingKey = {
    ...inner,
    async wrap(...args: Parameters<typeof inner.wrap>) {
      failOnce("key");
      return inner.wrap(...args);
    },
  };
  const failingStore: Documents = Object.assign(Object.create(documents), {
    async write(...args: Parameters<Documents["write"]>) {
      const outcome = await documents.write(...args);
      if (issuer.tokenRequests.length > 0) failOnce("store");
      return outcome;
    },
  });
  const vault = replica({ key: failingKey, documents: failingStore });
  await connect(vault, issuer);
  fails = true;
  const renewed = await access(vault);
  expect(fails).toBe(false);
  expect(issuer.tokenRequests).toHaveLength(1);
  expect(renewed.state === "open" && (await issuer.isActive(renewed.value))).toBe(true);
  const again = await access(vault, generationOf(renewed));
  expect(again.state).toBe("open");
});

test("a caller that leaves during a renewal loses no grant", async () => {
  const { replica } = deployment();
  const issuer = await authorizationServer();
  const vault = replica();
  await connect(vault, issuer);
  const gate = Promise.withResolvers<void>();
  issuer.state.pause = gate.promise;
  const leaving = new AbortController();
  const left = vault.access(ADA, "calendar", { signal: leaving.signal });
  await expect.poll(() => issuer.tokenRequests.length).toBe(1);
  leaving.abort(new Error("The run was cancelled."));
  await expect(left).rejects.toThrow("The run was cancelled.");
  gate.resolve();
  await vault.close();
  const next = await access(replica());
  expect(next.state).toBe("open");
  expect(issuer.tokenRequests).toHaveLength(1);
});

test("tokens renewed while the user replaced the connection are revoked, and the user's are used", async () => {
  const { replica } = deployment();
  const issuer = await authorizationServer();
  const vault = replica();
  await connect(vault, issuer);
  const { renewing, answer } = await renewal(vault, issuer);
  await vault.put(ADA, "calendar", { type: "static_bearer", mcp_server_url: RESOURCE, token: "mine" });
  answer();
  expect(await renewing).toMatchObject({ state: "open", value: "mine" });
  expect(issuer.revocations).toHaveLength(1);
});

test("a deletion during a renewal does not confirm that no token is left", async () => {
  const { replica } = deployment();
  const issuer = await authorizationServer();
  const vault = replica();
  await connect(vault, issuer);
  const { renewing, answer } = await renewal(vault, issuer);
  expect(await vault.delete(ADA, "calendar", { by: ADA })).toEqual({ isRevoked: false });
  answer();
  expect(await renewing).toEqual({ state: "absent" });
});

test("an issuer's refusal ends the connection, and the issuer is not called again", async () => {
  const { replica, lines } = deployment();
  const issuer = await authorizationServer();
  const vault = replica();
  const { refresh_token } = await connect(vault, issuer);
  const form = { token: refresh_token, token_type_hint: "refresh_token" };
  const basic = [CLIENT.client_id, CLIENT.client_secret].map(encodeURIComponent).join(":");
  const headers = { authorization: `Basic ${Buffer.from(basic).toString("base64")}` };
  await fetch(`${issuer.url}/token/revocation`, { method: "POST", headers, body: new URLSearchParams(form) });
  expect(await access(vault)).toEqual({
    state: "ended",
    reason: "its issuer answered 400 (`invalid_grant`)",
  });
  expect((await vault.get(ADA, "calendar"))?.connection.ended?.reason).toContain("invalid_grant");
  await access(vault);
  expect(issuer.tokenRequests).toHaveLength(1);
  expect(JSON.stringify(lines)).not.toContain(refresh_token);
});

test("an unavailable issuer keeps the grant, and is called again after a moment", async () => {
  const { replica, pass } = deployment();
  const issuer = await authorizationServer();
  const vaults = [replica(), replica()];
  await connect(vaults[0] as Vault, issuer);
  issuer.state.failsWith = 503;
  const failed = { state: "failed", reason: "its issuer answered 503" };
  expect(await Promise.all([...vaults, ...vaults].map((vault) => access(vault)))).toEqual(
    Array(4).fill(failed),
  );
  expect(issuer.tokenRequests).toHaveLength(1);
  issuer.state.failsWith = undefined;
  pass(5000);
  expect(await access(vaults[1] as Vault)).toMatchObject({ state: "open" });
});

test("a process that died during a renewal delays the others only for a limited time", async () => {
  const { replica, pass } = deployment();
  const issuer = await authorizationServer();
  const dying = replica();
  await connect(dying, issuer);
  const gate = Promise.withResolvers<void>();
  issuer.state.pause = gate.promise;
  const stuck = access(dying);
  await expect.poll(() => issuer.tokenRequests.length).toBe(1);
  issuer.state.pause = Promise.resolve();
  const waiting = access(replica());
  pass(120_000);
  expect(await waiting).toMatchObject({ state: "open" });
  gate.resolve();
  await stuck;
});

test("deleting a connection revokes its tokens at the issuer", async () => {
  const { replica } = deployment();
  const issuer = await authorizationServer();
  const vault = replica();
  await connect(vault, issuer);
  const opened = await access(vault);
  const { value } = opened as { value: string };
  expect(await vault.delete(ADA, "calendar", { by: ADA })).toEqual({ isRevoked: true });
  expect(await issuer.isActive(value)).toBe(false);
  expect(await access(vault)).toEqual({ state: "absent" });
});

test("the deletion of a user also revokes tokens that another process stores meanwhile", async () => {
  const { replica, documents } = deployment();
  const issuer = await authorizationServer();
  const other = replica();
  await connect(other, issuer);
  const tokens: Awaited<ReturnType<typeof connect>>[] = [];
  const slow: Documents = Object.assign(Object.create(documents), {
    async list(...args: Parameters<Documents["list"]>) {
      // After the first look the connection is replaced, and before the second one it is created again.
      if (tokens.length === 1) tokens.push(await connect(other, issuer));
      const found = await documents.list(...args);
      if (tokens.length === 0) tokens.push(await connect(other, issuer));
      return found;
    },
  });
  // The use of a connection that was deleted at the same time.
  const uses = { kind: "connection_uses", ...ADA };
  const use = { key: "gone", seen: undefined, body: new Date().toISOString() };
  await documents.write(uses, [use], { version: "v1" });
  expect(await replica({ documents: slow }).records.deleteAll(ADA)).toBe(2);
  expect(await documents.list(uses)).toEqual([]);
  for (const { access_token } of tokens) expect(await issuer.isActive(access_token)).toBe(false);
  expect(await access(other)).toEqual({ state: "absent" });
});

test("a new key protects all secrets within a day, and the old one is then no longer needed", async () => {
  const { replica, pass, documents } = deployment();
  const vault = replica();
  await vault.put(ADA, "calendar", { type: "static_bearer", mcp_server_url: RESOURCE, token: "the-token" });
  const next = key();
  const bodyOf = async () =>
    (await documents.read({ kind: "connections", ...ADA }, ["calendar"])).found[0]?.body ?? "";
  pass(25 * 3_600_000);
  await vault.close();
  const rotated = replica({ key: next });
  await expect.poll(bodyOf).toContain(`v1.${next.id}.`);
  await rotated.close();
  const without = replica({ key: next, previousKeys: [] });
  expect(await access(without)).toMatchObject({ state: "open", value: "the-token" });
  expect(await bodyOf()).not.toContain("the-token");
});

test("a secret that was copied to another user's collection cannot be decrypted", async () => {
  const { replica, documents } = deployment();
  const vault = replica();
  await vault.put(ADA, "calendar", { type: "static_bearer", mcp_server_url: RESOURCE, token: "the-token" });
  const [found] = (await documents.read({ kind: "connections", ...ADA }, ["calendar"])).found;
  const eve = { tenant: "acme", user: "eve" };
  const write = { key: "calendar", seen: undefined, body: found?.body };
  await documents.write({ kind: "connections", ...eve }, [write], { version: "copied" });
  await expect(vault.access(eve, "calendar", { signal })).rejects.toThrow("cannot be decrypted");
});
