import { join } from "node:path";
import { EventSource } from "undici";
import { expect, test } from "vitest";
import { openSqliteKeyFile } from "../../src/engine/stores/sqlite/key-file.ts";
import { createApiKeys, issueApiKey } from "../../src/server/auth/api-keys.ts";
import { names } from "../support/drain.ts";
import { startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";

test("two users of a server with keys never meet, and a browser follows by ticket", async () => {
  const { url, dir } = await startServer({
    config: {
      auth: { scheme: "api_key" },
      backends: { allow_local: true },
      cors: { origins: ["https://a.example"] },
    },
  });
  const { documents, close } = openSqliteKeyFile(join(dir, "data"));
  const keys = createApiKeys(documents);
  const key = async (user: string) =>
    (await issueApiKey(keys, { tenant: "t", user, scopes: ["read", "run"], name: "" })).key;
  const [ada, bob] = [await key("ada"), await key("bob")];
  close();
  const as = (k: string) => ({
    authorization: `Bearer ${k}`,
    "content-type": "application/json",
    origin: "https://a.example",
    "sec-fetch-site": "cross-site",
  });
  const run = await post(`${url}/threads/t1/runs`, { input: "hi" }, as(ada));
  const events = await run.ended();
  expect(events.at(-1)?.event).toBe("done");
  expect(run.headers.get("access-control-allow-origin")).toBe("https://a.example");
  expect(run.headers.get("x-frame-options")).toBe("DENY");
  expect((await fetch(`${url}/threads/t1`, { headers: as(bob) })).status).toBe(404);
  expect((await fetch(`${url}/threads/t1`)).status).toBe(401);
  expect((await fetch(`${url}/threads/t1`, { headers: as(ada) })).status).toBe(200);
  const path = run.headers.get("location") ?? "";
  const { ticket } = (await (
    await fetch(`${url}/tickets`, { method: "POST", headers: as(ada), body: JSON.stringify({ path }) })
  ).json()) as { ticket: string };
  const source = new EventSource(`${url}${path}?ticket=${ticket}`);
  const seen: unknown[] = [];
  await new Promise<void>((resolve) => {
    for (const name of new Set(names(events)))
      source.addEventListener(name, (event) => {
        seen.push("data" in event && JSON.parse(String(event.data)));
        if (name === "done") resolve();
      });
  });
  source.close();
  expect(seen).toEqual(events);
});

test("a link with a ticket opens a file for its user, and no other file", async () => {
  const config = { auth: { scheme: "api_key" }, backends: { allow_local: true } };
  const { url, dir } = await startServer({ config });
  const { documents, close } = openSqliteKeyFile(join(dir, "data"));
  const scopes = ["read", "run"] as const;
  const { key } = await issueApiKey(createApiKeys(documents), {
    ...{ tenant: "t", user: "ada", scopes: [...scopes], name: "" },
  });
  close();
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const path = "/backend/files/notes/a%20b.txt";
  for (const name of [path, "/backend/files/other.txt"])
    await fetch(`${url}${name}`, { method: "PUT", headers, body: "what it says" });
  const answer = await fetch(`${url}/tickets`, { method: "POST", headers, body: JSON.stringify({ path }) });
  const { ticket } = (await answer.json()) as { ticket: string };
  const file = await fetch(`${url}${path}?ticket=${ticket}`);
  expect([file.status, await file.text()]).toEqual([200, "what it says"]);
  for (const [other, method] of [
    ["/backend/files/other.txt", "GET"],
    [path, "PUT"],
    [path, "DELETE"],
  ] as const)
    expect((await fetch(`${url}${other}?ticket=${ticket}`, { method })).status, method).toBe(401);
});

test("a front end can read the owner and the scopes of its credentials", async () => {
  const { url, dir } = await startServer({ config: { auth: { scheme: "api_key" } } });
  const { documents, close } = openSqliteKeyFile(join(dir, "data"));
  const expires_at = new Date(Date.now() + 3_600_000).toISOString();
  const { key } = await issueApiKey(createApiKeys(documents), {
    ...{ tenant: "acme", user: "ada", scopes: ["tools"], name: "", expires_at },
  });
  close();
  const me = await fetch(`${url}/me`, { headers: { authorization: `Bearer ${key}` } });
  expect(await me.json()).toEqual({
    ...{ tenant: "acme", user: "ada", scopes: ["tools"], auth: "api_key", expires_at },
    wires: expect.arrayContaining(["openai"]),
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
  });
  expect((await fetch(`${url}/me`)).status).toBe(401);
});
