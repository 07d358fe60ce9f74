// An operator gives up a Docker engine that is lost for good.

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createClient } from "../../../src/client/client.ts";
import { createSqliteStores } from "../../../src/engine/stores/sqlite/index.ts";
import { createLedger } from "../../../src/sandbox/ledger.ts";
import { box, MANY } from "../../engine/stores/fixture-sandboxes.ts";
import { startServer, temporaryFolder } from "../../support/server.ts";

/** A server with the engine `a`, in whose ledger are sandboxes on it and on another one. */
async function served() {
  const dir = await temporaryFolder();
  await mkdir(join(dir, "data"));
  const stores = createSqliteStores({ dataDir: join(dir, "data") });
  const ledger = createLedger(stores.documents);
  await ledger.enter(box("here", { engine: "a" }), MANY);
  for (const id of ["gone-1", "gone-2"]) await ledger.enter(box(id, { engine: "b" }), MANY);
  await stores.close();
  const engines = [{ name: "a", host: "unix:///nowhere" }];
  const auth = { scheme: "header", trusted_proxies: ["127.0.0.1"], external_operators: true };
  const { url } = await startServer({
    dir,
    config: { store: "sqlite", auth, backends: { allow_local: true, docker: { engines } } },
  });
  const as = (scopes: string) =>
    createClient({
      baseUrl: url,
      headers: { "x-skein-tenant": "acme", "x-skein-user": "ops", "x-skein-scopes": scopes },
    }).admin;
  return { as, left: async () => (await as("operator").sandboxes()).items.map(({ id }) => id) };
}

test("data on an engine that the settings no longer name is abandoned once, and nothing else", async () => {
  const { as, left } = await served();
  expect(await as("operator").forgetEngine("b")).toEqual({ lost: 2, kept: 0 });
  expect(await left()).toEqual(["here"]);
  expect(await as("operator").forgetEngine("b")).toEqual({ lost: 0, kept: 0 });
});

test("an engine in the settings cannot be forgotten, and a tenant's admin cannot forget any", async () => {
  const { as, left } = await served();
  await expect(as("operator").forgetEngine("a")).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining("Remove it from `backends.docker.engines` of all servers"),
  });
  await expect(as("admin").forgetEngine("b")).rejects.toMatchObject({ status: 403 });
  expect(await left()).toHaveLength(3);
});
