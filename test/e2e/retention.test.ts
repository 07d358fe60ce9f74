import { describe, expect, test } from "vitest";
import { startServer } from "../support/server.ts";

const KEPT = { threads: "0.3s", interrupted_threads: "1h", sweep: "0.05s" };

describe.each(["sqlite", "memory"])("threads of a server with the store %s", (store) => {
  const start = async (retention: object) => {
    const { url } = await startServer({ config: { store, retention } });
    const made = await fetch(`${url}/threads`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ id: "t" }),
    });
    expect(made.status).toBe(201);
    return { url, ids: () => idsAt(url) };
  };

  test("are deleted if they were not used for `retention.threads`", async () => {
    const { url, ids } = await start(KEPT);
    await expect.poll(ids).toEqual([]);
    expect((await fetch(`${url}/threads/t`)).status).toBe(404);
  });

  test("are kept if `retention.threads` is not set", async () => {
    const { ids } = await start({ interrupted_threads: "0.01s", sweep: "0.01s" });
    const { ids: others } = await start(KEPT);
    await expect.poll(others).toEqual([]);
    expect(await ids()).toEqual(["t"]);
  });
});

async function idsAt(url: string): Promise<string[]> {
  const { items } = (await (await fetch(`${url}/threads`)).json()) as { items: { id: string }[] };
  return items.map(({ id }) => id);
}
