import { afterAll, expect, test } from "vitest";
import { createPostgresStores, openPostgresKeys } from "../../../src/engine/stores/postgres/index.ts";
import { createApiKeys, issueApiKey } from "../../../src/server/auth/api-keys.ts";
import { quotasContract } from "../../contracts/quotas.ts";
import { needing } from "../../support/needing.ts";
import { startPostgres } from "../../support/postgres.ts";
import { ADA, PATIENT } from "./fixture.ts";
import { tablesOf } from "./postgres-tables.ts";

const postgres = await startPostgres();
const tables = await tablesOf(postgres);
afterAll(async () => {
  await tables?.close();
  await postgres?.close();
});
const empty = async () => (await tables?.empty()) ?? "";

const openKeys = async (url: string, now?: () => number) => {
  const { documents, close } = await openPostgresKeys(url, now);
  return { keys: createApiKeys(documents), close };
};

needing(postgres, "postgres").describe("in PostgreSQL", () => {
  quotasContract(async (now) => {
    const url = await empty();
    const open = () => createPostgresStores({ url, now, ...PATIENT });
    return { ...(await open()), elsewhere: await open() };
  });

  test("time is PostgreSQL's own", async () => {
    const { quotas, close } = await createPostgresStores({ url: await empty() });
    const { now } = await quotas.accounts(ADA);
    expect(Math.abs(now - Date.now())).toBeLessThan(60_000);
    await close();
  });

  test("one process can create and revoke keys while another one checks them", async () => {
    const url = await empty();
    const [server, console] = [await openKeys(url), await openKeys(url)];
    const about = { tenant: "acme", user: "ada", scopes: ["read" as const], name: "" };
    const { key, record } = await issueApiKey(console.keys, about);
    expect(await server.keys.find(record.id)).toMatchObject({ id: record.id });
    await console.keys.revoke(record.id);
    console.close();
    expect(await server.keys.find(record.id)).toHaveProperty("revoked_at");
    server.close();
    await expect(server.keys.find(record.id)).rejects.toMatchObject({ code: "unavailable" });
    const kept = JSON.stringify(await postgres?.ask(url, "SELECT * FROM skein.documents"));
    expect(kept).toContain(record.id);
    expect(kept).not.toContain(key.slice(-43));
  });
});
