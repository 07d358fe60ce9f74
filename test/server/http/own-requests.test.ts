// Requests that a plugin sends to its server for a user: they are that user's, and no one else can send them.

import { once } from "node:events";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import type { Turn } from "../../../src/agent/models/scripted.ts";
import { createClient } from "../../../src/client/client.ts";
import type { Owner } from "../../../src/protocol/ids.ts";
import type { PluginRouteOptions, PluginRoutes } from "../../../src/server/http/plugin-routes.ts";
import { collectGarbage } from "../../support/garbage.ts";
import { startServer } from "../../support/server.ts";

const ADA = { tenant: "acme", user: "ada" };

/** A server with a plugin that has `routes` and whose `fetchAs` the test calls, and its users, who send headers. */
async function served(script: readonly Turn[], config: object = {}, routes?: PluginRoutes) {
  let given: PluginRouteOptions | undefined;
  const keep: PluginRoutes = async (app, options) => {
    given = options;
    await routes?.(app, options);
  };
  const { url } = await startServer({
    script,
    config: {
      auth: { scheme: "header", trusted_proxies: ["127.0.0.0/8"] },
      backends: { allow_local: true },
      ...config,
    },
    plugins: [{ name: "chat", routes: keep }],
  });
  const fetchAs = (owner: Owner) => given?.fetchAs(owner) ?? fetch;
  return {
    url,
    fetchAs,
    /** As the plugin acts for a user. */
    acting: (owner: Owner) => createClient({ baseUrl: "http://localhost", fetch: fetchAs(owner) }),
    /** As the user sends requests. */
    as: ({ tenant, user }: Owner) =>
      createClient({
        baseUrl: url,
        headers: { "x-skein-tenant": tenant, "x-skein-user": user, "x-skein-scopes": "read,run" },
      }),
  };
}

test("a plugin can start and follow a user's run, which the user sees as their own", async () => {
  const { acting, as } = await served([{ say: "Hello Ada." }]);
  let text = "";
  for await (const event of acting(ADA).run("t1", { input: "Hello." }))
    if (event.event === "on_chat_model_stream" && "delta" in event.data) text += event.data.delta;
  expect(text).toBe("Hello Ada.");
  const { items } = await as(ADA).threads.messages("t1");
  expect(items.map(({ content }) => content)).toEqual(["Hello.", "Hello Ada."]);
  for (const stranger of [
    { ...ADA, user: "bob" },
    { ...ADA, tenant: "other" },
  ])
    await expect(acting(stranger).threads.get("t1")).rejects.toMatchObject({ code: "not_found" });
});

test("it has neither an administrator's rights nor more requests than the user", async () => {
  const { fetchAs } = await served([], { quotas: { user: { requests_per_minute: 2 } } });
  const statuses = [];
  for (const path of ["/admin/users", "/threads", "/threads", "/threads"])
    statuses.push((await fetchAs(ADA)(`http://localhost${path}`)).status);
  expect(statuses).toEqual([403, 200, 200, 429]);
});

test.each(["its options", "a Request"])(
  "a plugin that stops reading, by a signal in %s, leaves like any client",
  async (where) => {
    const { fetchAs, as } = await served([{ say: "word never", delay_ms: 600_000 }]);
    const send: typeof fetch = (input, init) =>
      where === "its options" ? fetchAs(ADA)(input, init) : fetchAs(ADA)(new Request(input, init));
    const acting = createClient({ baseUrl: "http://localhost", fetch: send });
    const leaves = new AbortController();
    const run = acting.run("t1", { input: "Go.", on_disconnect: "cancel" }, leaves.signal);
    const reading = (async () => {
      for await (const { event } of run)
        if (event === "on_chat_model_start") {
          // The signal must not depend on objects that only the fetch had.
          collectGarbage();
          leaves.abort();
        }
    })();
    await reading.catch(() => {});
    await expect.poll(async () => (await as(ADA).runs.of("t1")).items[0]?.status).toBe("cancelled");
  },
);

test("a plugin that stops waiting gets no response, and a late one ends like a response to a disconnected client", async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const body = new Readable({ read() {} });
  const { fetchAs } = await served([], {}, async (app) => {
    app.get("/slow", async (_request, reply) => {
      asked.resolve();
      await answer.promise;
      return reply.send(body);
    });
  });
  const leaves = new AbortController();
  const response = fetchAs(ADA)("http://localhost/plugins/chat/slow", { signal: leaves.signal });
  await asked.promise;
  leaves.abort(new Error("no longer needed"));
  await expect(response).rejects.toThrow("no longer needed");
  const closed = once(body, "close");
  body.push("late");
  answer.resolve();
  await closed;
});

test("an external request that claims to be one of them is refused", async () => {
  const { url, acting } = await served([]);
  await acting(ADA).threads.list();
  const claimed = await fetch(`${url}/threads`, { headers: { "x-skein-own-request": "a".repeat(22) } });
  expect(claimed.status).toBe(401);
});

test("it acts for no name that credentials cannot have", async () => {
  const { fetchAs } = await served([]);
  expect(() => fetchAs({ tenant: "acme", user: "ada\u200b" })).toThrow("without spaces");
});
