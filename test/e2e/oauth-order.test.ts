// Consents that meet another consent, a deletion or a process that was held up: the last decision of a person counts.

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { deployment, serve } from "../support/account-server.ts";
import { newBrowser, visit } from "../support/authorization-server.ts";
import { connectAt, consent, proceed } from "../support/connecting.ts";
import { holdingKey } from "../support/holding-key.ts";

test("an address that is opened often leads back from its last visit only, and keeps nothing of the others", async () => {
  const parts = await deployment();
  const { as, dir } = await serve(parts, { config: { store: "sqlite" } });
  const ada = as("ada");
  const address = await ada.address();
  const places = () => {
    const database = new DatabaseSync(join(dir, "data", "skein.db"), { readOnly: true });
    const sql = "SELECT count(*) AS number FROM documents WHERE collection LIKE '%connect_places%'";
    const [row] = database.prepare(sql).all();
    database.close();
    return Number(row?.number);
  };
  const first = newBrowser();
  const tooEarly = await consent(address, first);
  for (let visit = 0; visit < 3; visit++) await proceed(address, newBrowser());
  const browser = newBrowser();
  const back = await consent(address, browser);
  // One leads from the address to the request, and one from the last visit.
  expect(places()).toBe(2);
  expect((await visit(first, tooEarly)).status).toBe(404);
  expect((await visit(browser, back)).status).toBe(200);
  await expect.poll(places).toBe(0);
  expect(await ada.connections()).toMatchObject([{ id: "calendar" }]);
});

test("an account that is connected in the moment in which another one was replaces it", async () => {
  const parts = await deployment();
  const moment = Date.now();
  const { as } = await serve(parts, { now: () => moment });
  const ada = as("ada");
  await connectAt(await ada.address());
  parts.issuer.state.account = "grace";
  await connectAt(await ada.address());
  await ada.run("look");
  expect(await ada.messages()).toContain("the calendar of grace");
});

test("an account that was connected later stays when the tokens of an earlier consent arrive late", async () => {
  const parts = await deployment();
  let stored = 0;
  const { plugins, held, release } = holdingKey(
    (context) => context.includes("connections") && ++stored === 1,
  );
  const { as } = await serve(parts, { plugins });
  const ada = as("ada");
  const early = connectAt(await ada.address());
  await held;
  parts.issuer.state.account = "grace";
  await connectAt(await ada.address());
  release();
  await early;
  await ada.run("look");
  expect(await ada.messages()).toContain("the calendar of grace");
});

test("an account that its user deletes while the tokens of an earlier consent are exchanged stays deleted, and they are revoked", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const ada = as("ada");
  await connectAt(await ada.address());
  const { state, tokenRequests, revocations } = parts.issuer;
  const hold = Promise.withResolvers<void>();
  state.pause = hold.promise;
  const connecting = connectAt(await ada.address());
  await expect.poll(() => tokenRequests.length).toBe(2);
  // The tokens that are still to arrive are revoked later.
  expect(await ada.client.connections.delete("calendar")).toEqual({ is_revoked: false });
  hold.resolve();
  expect((await connecting).status).toBe(404);
  expect(await ada.connections()).toEqual([]);
  expect(revocations).toHaveLength(2);
});

test("an account that its user deletes while the tokens of an earlier consent are stored stays deleted, and can be connected again", async () => {
  const parts = await deployment();
  let stored = 0;
  const { plugins, held, release } = holdingKey(
    (context) => context.includes("connections") && ++stored === 2,
  );
  const { as } = await serve(parts, { plugins });
  const ada = as("ada");
  await connectAt(await ada.address());
  const connecting = connectAt(await ada.address());
  await held;
  expect(await ada.client.connections.delete("calendar")).toEqual({ is_revoked: true });
  release();
  expect((await connecting).status).toBe(404);
  expect(await ada.connections()).toEqual([]);
  expect((await connectAt(await ada.address())).status).toBe(200);
  expect(await ada.connections()).toMatchObject([{ id: "calendar" }]);
});

test("an account that is not stored yet can be deleted, and another deletion leaves it alone", async () => {
  const parts = await deployment();
  let stored = 0;
  const { plugins, held, release } = holdingKey(
    (context) => context.includes("calendar") && context.includes("connections") && ++stored < 3,
  );
  const { as } = await serve(parts, { plugins });
  const [ada, bob] = [as("ada"), as("bob")];
  const { connections } = ada.client;
  const connecting = [connectAt(await ada.address()), connectAt(await bob.address())];
  await held;
  await expect.poll(() => stored).toBe(2);
  const token = { mcp_server_url: "https://search.example.com/mcp", token: "t" };
  await bob.client.connections.put("search", { type: "static_bearer", ...token });
  await bob.client.connections.delete("search");
  await expect(connections.delete("calendar")).rejects.toThrow("There is no connection `calendar`");
  release();
  expect((await Promise.all(connecting)).map(({ status }) => status)).toEqual([404, 200]);
  expect(await ada.connections()).toEqual([]);
  expect(await bob.connections()).toMatchObject([{ id: "calendar" }]);
  await expect.poll(() => parts.issuer.revocations).toHaveLength(1);
  await bob.client.connections.delete("calendar");
  await expect.poll(() => parts.issuer.revocations).toHaveLength(2);
});

test("an account that is deleted can be connected at an address that was given out before", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const ada = as("ada");
  await connectAt(await ada.address());
  const [address, declined] = [await ada.address(), await ada.address()];
  parts.issuer.state.agrees = false;
  expect((await connectAt(declined)).status).toBe(403);
  parts.issuer.state.agrees = true;
  const browser = newBrowser();
  const back = await consent(address, browser);
  await ada.client.connections.delete("calendar");
  expect((await visit(browser, back)).status).toBe(200);
  expect((await connectAt(declined)).status).toBe(200);
  expect(await ada.connections()).toMatchObject([{ id: "calendar" }]);
});

test("a person who agrees twice at one address gets the account of the second consent", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const ada = as("ada");
  const address = await ada.address();
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { state, tokenRequests, revocations } = parts.issuer;
  state.pause = first.promise;
  const early = connectAt(address);
  await expect.poll(() => tokenRequests.length).toBe(1);
  Object.assign(state, { pause: second.promise, account: "grace" });
  const late = connectAt(address);
  await expect.poll(() => tokenRequests.length).toBe(2);
  first.resolve();
  const replaced = await early;
  second.resolve();
  expect([replaced.status, (await late).status]).toEqual([404, 200]);
  expect(revocations).toHaveLength(1);
  await ada.run("look");
  expect(await ada.messages()).toContain("the calendar of grace");
});

test("no data is kept about a user who was deleted while at the authorization server", async () => {
  const parts = await deployment();
  const { as, url } = await serve(parts);
  const browser = newBrowser();
  const back = await consent(await as("eve").address(), browser);
  const admin = as("ada");
  const gone = await fetch(`${url}/admin/tenants/acme/users/eve`, {
    method: "DELETE",
    headers: admin.headers,
  });
  expect(gone.status).toBe(200);
  expect((await visit(browser, back)).status).toBe(404);
  expect(await as("eve").connections()).toEqual([]);
  expect(parts.issuer.tokenRequests).toEqual([]);
});

test("a server that was held up leaves the account alone that another one has connected meanwhile", async () => {
  const parts = await deployment();
  let late = 0;
  const { plugins, held, release } = holdingKey((context) => late === 0 && context.includes("connections"));
  const { as } = await serve(parts, { now: () => Date.now() + late, plugins });
  const ada = as("ada");
  await ada.run("look");
  const [asked] = await ada.interrupts();
  const connecting = connectAt(asked?.url ?? "");
  await held;
  // Longer than the claim of a request.
  late = 40_000;
  await expect.poll(() => ada.messages()).toContain("the calendar of ada");
  await expect.poll(async () => (await ada.exported("connection_request")).length).toBe(0);
  release();
  expect((await connecting).text).toContain("The account is connected");
  expect(await ada.connections()).toMatchObject([{ id: "calendar" }]);
  expect(parts.calendar.calls).toEqual([{ user: "ada", tool: "list" }]);
});
