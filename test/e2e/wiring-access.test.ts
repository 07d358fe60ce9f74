// Who may reach the server, and whom the server reaches: what the operator's settings say of it holds in the real process.

import { request } from "node:http";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { dataOf } from "../support/drain.ts";
import { httpServer, json } from "../support/hostile.ts";
import { type ServerProcess, serveWith, skein } from "../support/process.ts";
import { startServer } from "../support/server.ts";
import { post, view } from "../support/sse.ts";

const GATEWAY = { AUTH: "header", TRUSTED_PROXIES: "127.0.0.1" };
const as = (user: string) => ({
  "x-skein-tenant": "acme",
  "x-skein-user": user,
  "x-skein-scopes": "read run tools",
});
const runAs = async ({ url }: ServerProcess, user: string) =>
  (await post(`${url}/threads/t1/runs`, { input: "go" }, as(user))).ended();

test("the app itself, under any configuration, refuses a public address without authentication", async () => {
  await expect(startServer({ config: { listen: { host: "0.0.0.0", port: 0 } } })).rejects.toMatchObject({
    code: "config_invalid",
    message: expect.stringContaining("HOST=0.0.0.0"),
  });
});

test("AUTH=api_key accepts keys from `skein keys create` until they are revoked", async () => {
  const server = await serveWith({}, { env: { AUTH: "api_key" } });
  const keys = async (...args: string[]) => {
    const run = skein(["keys", ...args], { DATA_DIR: join(server.dir, "data") });
    expect(await run.exited).toBe(0);
    return run.output();
  };
  const key = /\bsk_\S+/.exec(await keys("create", "--user", "ada"))?.[0] ?? "";
  const status = async () =>
    (await fetch(`${server.url}/threads`, { headers: { authorization: `Bearer ${key}` } })).status;
  expect(await status()).toBe(200);
  await keys("revoke", key);
  await expect.poll(status).toBe(401);
});

const WORKING = {
  agent: { backend: { type: "local" } },
  script: "- { call: [{ tool: execute, args: { command: echo hello } }] }\n- { say: ok }",
};
/** What a user's run with a command comes to. */
const outcome = async (server: ServerProcess, user: string) => {
  const events = await runAs(server, user);
  return JSON.stringify([dataOf(events, "on_tool_end"), dataOf(events, "error")]);
};

test("quotas limit each user separately", async () => {
  const { url } = await serveWith({ quotas: { user: { requests_per_minute: 2 } } }, { env: GATEWAY });
  const ask = async (user: string) => (await fetch(`${url}/agents`, { headers: as(user) })).status;
  expect([await ask("ada"), await ask("ada"), await ask("ada")]).toEqual([200, 200, 429]);
  expect(await ask("bob")).toBe(200);
});

test("a gateway on this machine is trusted only under the names of the server", async () => {
  const env = { ...GATEWAY, AUTH_HOSTS: "chat.internal", PUBLIC_URL: "https://skein.example.com" };
  const { url } = await serveWith({}, { env });
  const ask = async (host: string, path = "/threads") => {
    const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
    const outgoing = request(url + path, { headers: { ...as("ada"), host } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    outgoing.on("error", reject).end();
    return promise;
  };
  for (const host of ["localhost:8000", "127.0.0.1", "[::1]:1", "Chat.Internal", "skein.example.com:443"])
    expect(await ask(host), host).toBe(200);
  for (const host of ["evil.example", "chat.internal.evil.example", "10.0.0.1", "chat.internal@evil.example"])
    expect(await ask(host), host).toBe(403);
  // A load balancer asks by address.
  expect(await ask("10.0.0.1:8000", "/ready")).toBe(200);
});

describe("the local backend of a server with several users", () => {
  test("serves only the first of them", async () => {
    const server = await serveWith({}, { ...WORKING, env: GATEWAY });
    expect(await outcome(server, "ada")).toContain("hello");
    expect(await outcome(server, "bob")).toContain("ALLOW_LOCAL_BACKEND=true");
  });
});

test("CORS_ORIGINS, TICKET_SECRET and ALLOW_LOCAL_BACKEND apply to one server", async () => {
  const [secret, other] = ["s", "o"].map((letter) => letter.repeat(32)) as [string, string];
  const start = (TICKET_SECRET: string, more: object = {}) =>
    serveWith({}, { ...WORKING, env: { ...GATEWAY, TICKET_SECRET, ...more } });
  const [server, same, stranger] = await Promise.all([
    start(secret, {
      CORS_ORIGINS: "https://app.example.com",
      ALLOW_LOCAL_BACKEND: "true",
    }),
    start(secret),
    start(other),
  ]);
  const { url } = server;
  const preflight = async (origin: string) => {
    const headers = { origin, "access-control-request-method": "POST" };
    const { headers: answer } = await fetch(`${url}/threads`, { method: "OPTIONS", headers });
    return answer.get("access-control-allow-origin");
  };
  expect(await preflight("https://app.example.com")).toBe("https://app.example.com");
  expect(await preflight("https://evil.example.com")).toBeNull();

  // A server takes the tickets of another one that has the same secret.
  const headers = { ...as("ada"), "content-type": "application/json" };
  const issued = await fetch(`${url}/tickets`, { method: "POST", headers, body: '{"path":"/events"}' });
  const { ticket } = (await issued.json()) as { ticket: string };
  const opened = await view(`${same.url}/events?ticket=${ticket}`);
  expect(opened.status).toBe(200);
  opened.leave();
  expect((await fetch(`${stranger.url}/events?ticket=${ticket}`)).status).toBe(401);

  for (const user of ["ada", "bob"]) expect(await outcome(server, user)).toContain("hello");
});

describe("tools that tenants register", () => {
  const register = async (url: string, tool: object) => {
    const body = JSON.stringify({ description: "A tool.", parameters: { type: "object" }, ...tool });
    const headers = { "content-type": "application/json" };
    return (await fetch(`${url}/tools`, { method: "POST", headers, body })).status;
  };
  const results = async (url: string) => {
    const events = await (await post(`${url}/threads/t1/runs`, { input: "go" })).ended();
    return { ends: dataOf(events, "on_tool_end"), status: dataOf(events, "done")[0]?.status };
  };

  test("reach the addresses in HTTP_TOOLS_ALLOW and no other private one; later results arrive at PUBLIC_URL", async () => {
    const allowed = await httpServer((_, response) => response.writeHead(202).end());
    const other = await httpServer(json({ result: "reached" }));
    const { url } = await serveWith(
      { http_tools: { bytes: 1000 } },
      {
        env: { HTTP_TOOLS_ALLOW: `127.0.0.1:${allowed.port}`, PUBLIC_URL: "https://skein.example.com/" },
        agent: { tools: ["weather", "traffic"] },
        script: "- { call: [{ tool: weather }] }\n- { say: ok }",
      },
    );
    expect(await register(url, { name: "weather", callback_url: allowed.url })).toBe(201);
    expect(await register(url, { name: "traffic", callback_url: other.url })).toBe(400);
    const { status } = await results(url);
    expect(other.heard).toEqual([]);
    expect(status).toBe("interrupted");
    const { result_url } = JSON.parse(allowed.heard[0]?.body ?? "{}");
    expect(result_url).toMatch(/^https:\/\/skein\.example\.com\/tool-results\/tr_/);
    const large = { name: "large", description: "x".repeat(700), callback_url: allowed.url };
    expect(await register(url, large)).toBe(429);
  });

  test("are not called at an address that is no longer allowed", async () => {
    const server = await httpServer(json({ result: "reached" }));
    const calling = {
      agent: { tools: ["weather"] },
      script: "- { call: [{ tool: weather }] }\n- { say: ok }",
    };
    const env = { HTTP_TOOLS_ALLOW: `127.0.0.1:${server.port}` };
    const first = await serveWith({}, { ...calling, env });
    expect(await register(first.url, { name: "weather", callback_url: server.url })).toBe(201);
    first.child.kill("SIGTERM");
    await first.exited;
    const second = await serveWith({}, { ...calling, dir: first.dir });
    const { ends } = await results(second.url);
    expect(ends[0]?.error).toContain("no public address");
    expect(server.heard).toEqual([]);
  });

  test.each([
    ["need a permission, also when they say that they need none", undefined, "interrupted", 0],
    ["need none when they say so and the operator trusts them", true, "success", 1],
  ])("%s", async (_, trust_annotations, expected, calls) => {
    const server = await httpServer(json({ result: "reached" }));
    const http_tools = { allow: `127.0.0.1:${server.port}`, trust_annotations };
    const { url } = await serveWith(
      { http_tools },
      {
        agent: { tools: ["weather"], permissions: { mode: "default" } },
        script: "- { call: [{ tool: weather }] }\n- { say: ok }",
      },
    );
    const annotations = { requires_permission: false };
    expect(await register(url, { name: "weather", callback_url: server.url, annotations })).toBe(201);
    expect((await results(url)).status).toBe(expected);
    expect(server.heard).toHaveLength(calls);
  });

  test("are for the agents that they name, and without PUBLIC_URL can answer later only on this machine", async () => {
    const server = await httpServer((_, response) => response.writeHead(202).end());
    const { url } = await serveWith(
      {},
      {
        env: { HTTP_TOOLS_ALLOW: `127.0.0.1:${server.port}` },
        agent: { tools: ["weather", "traffic"] },
        script: "- { call: [{ tool: traffic }] }\n- { call: [{ tool: weather }] }\n- { say: ok }",
      },
    );
    const traffic = { name: "traffic", callback_url: server.url, agents: ["other"] };
    expect(await register(url, traffic)).toBe(201);
    expect(await register(url, { name: "weather", callback_url: server.url })).toBe(201);
    const { ends, status } = await results(url);
    expect(ends[0]?.error).toContain("no tool `traffic`");
    expect(server.heard).toHaveLength(1);
    expect(status).toBe("interrupted");
    const { result_url } = JSON.parse(server.heard[0]?.body ?? "{}");
    expect(result_url.startsWith(`${url}/tool-results/tr_`)).toBe(true);
  });
});

test("interrupts.webhook receives a signed request for a waiting run", async () => {
  const inbox = await httpServer(json({}));
  const secret = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;
  const { url } = await serveWith(
    { interrupts: { webhook: { url: inbox.url, secret } } },
    {
      agent: { tools: ["ask_user"] },
      script: "- { call: [{ tool: ask_user, args: { question: Which? } }] }",
    },
  );
  await (await post(`${url}/threads/t1/runs`, { input: "go" })).ended();
  await expect.poll(() => inbox.heard.length).toBe(1);
  const [told] = inbox.heard;
  expect(new Webhook(secret).verify(told?.body ?? "", told?.headers as Record<string, string>)).toMatchObject(
    { data: { thread_id: "t1", interrupts: [{ prompt: "Which?" }] } },
  );
});
