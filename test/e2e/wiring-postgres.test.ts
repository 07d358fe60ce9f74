// Servers on one PostgreSQL, through the real processes.

import { afterAll, expect, test } from "vitest";
import { needing } from "../support/needing.ts";
import { startPostgres } from "../support/postgres.ts";
import { serveWith, skein } from "../support/process.ts";
import { post } from "../support/sse.ts";

const postgres = await startPostgres();
afterAll(() => postgres?.close());

needing(postgres, "postgres").describe("servers on PostgreSQL", () => {
  const place = async () => ({ STORE: "postgres", POSTGRES_URL: (await postgres?.database()) ?? "" });

  test("keep threads when all of them restart", async () => {
    const env = await place();
    const first = await serveWith({}, { env });
    await (await post(`${first.url}/threads/t/runs`, { input: "go" })).ended();
    first.child.kill("SIGTERM");
    expect(await first.exited).toBe(0);
    const { url } = await serveWith({}, { env });
    expect(await (await fetch(`${url}/threads/t`)).json()).toMatchObject({ id: "t", message_count: 2 });
  });

  test("accept the API keys from the command line", async () => {
    const env = { ...(await place()), AUTH: "api_key" };
    const { url, dir } = await serveWith({}, { env });
    const made = skein(["keys", "create", "--user", "ada"], { ...env, DATA_DIR: dir });
    expect(await made.exited).toBe(0);
    const [key] = /sk_\S+/.exec(made.output()) ?? [];
    const asked = await fetch(`${url}/me`, { headers: { authorization: `Bearer ${key}` } });
    expect(await asked.json()).toMatchObject({ user: "ada" });
  });

  test("do not show a password if PostgreSQL cannot be reached", async () => {
    const env = { STORE: "postgres", POSTGRES_URL: "postgres://me:hunter2@127.0.0.1:1/skein" };
    const server = skein(["serve"], { ...env, PORT: "0" });
    expect(await server.exited).toBe(1);
    expect(server.output()).toContain("PostgreSQL at 127.0.0.1:1/skein cannot be used");
    expect(server.output()).not.toContain("hunter2");
  });

  test("refuse a database that only a newer version can read", async () => {
    const env = await place();
    await serveWith({}, { env });
    await postgres?.ask(env.POSTGRES_URL, "UPDATE skein.format SET version = 99, readable_from = 99");
    const server = skein(["serve"], { ...env, PORT: "0" });
    expect(await server.exited).toBe(1);
    expect(server.output()).toContain("was written by a newer version of Skein");
  });
});
