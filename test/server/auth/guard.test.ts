import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { text } from "node:stream/consumers";
import fastify from "fastify";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { AuthConfig } from "../../../src/server/auth/config.ts";
import { unauthorized } from "../../../src/server/auth/credentials.ts";
import { guard, ownerOf, principalOf } from "../../../src/server/auth/guard.ts";
import { createAuthenticate } from "../../../src/server/auth/index.ts";
import { type Principal, Scope } from "../../../src/server/auth/principal.ts";
import { accessOf, requireScope, TICKET_PATH } from "../../../src/server/auth/scopes.ts";
import { createTickets } from "../../../src/server/auth/tickets.ts";
import { refuseCrossSiteWrites, refuseForeignHosts } from "../../../src/server/http/browser-security.ts";
import { sendProblem } from "../../../src/server/http/errors.ts";
import { memoryApiKeys } from "../../support/api-keys.ts";
import { ENDLESS_CREDENTIALS } from "../../support/credentials.ts";
import { answerTo, guarded } from "./guarded.ts";

const refuse = async (): Promise<Principal> => {
  throw unauthorized("Refused.");
};
const reader = async (): Promise<Principal> => ({ tenant: "acme", user: "ada", scopes: ["read"] });

function bare(authenticate = reader) {
  const server = fastify();
  onTestFinished(() => server.close());
  server.setErrorHandler<Error>(sendProblem);
  const tickets = createTickets(undefined);
  guard(server, { authenticate, tickets, credentials: ENDLESS_CREDENTIALS });
  return server;
}

describe("the guard", () => {
  test("lets everyone access public routes, and strangers nothing else", async () => {
    const { url } = await guarded(refuse);
    expect((await answerTo(`${url}/health`)).status).toBe(200);
    for (const path of ["/threads/t", "/events", "/nowhere", "/health/", "/HEALTH", "//health", "/health%20"])
      expect((await answerTo(`${url}${path}`)).status, path).toBe(401);
    expect((await answerTo(`${url}/health`, { method: "POST" })).status).toBe(401);
  });

  test("reports a missing name or scope", async () => {
    const { url } = await guarded(reader);
    expect((await answerTo(`${url}/threads/t`)).status).toBe(200);
    const refused = await answerTo(`${url}/threads`, { method: "POST" });
    expect(refused).toMatchObject({ status: 403, body: { code: "forbidden", details: { scope: "run" } } });
    expect((await answerTo(`${url}/nowhere`)).status).toBe(404);
  });

  test("responds before the body has arrived", async () => {
    const { port } = await guarded(refuse);
    const headers = { "content-type": "application/json", "content-length": 1_000_000 };
    const outgoing = request({ port, host: "127.0.0.1", method: "POST", path: "/threads", headers });
    outgoing.on("error", () => {});
    outgoing.flushHeaders();
    const status = await new Promise((resolve) =>
      outgoing.on("response", async (response) => {
        await text(response);
        resolve(response.statusCode);
      }),
    );
    outgoing.destroy();
    expect(status).toBe(401);
  });

  test("refuses routes without a scope", async () => {
    const server = bare();
    expect(() => server.get("/secrets", async () => "")).toThrow(/`GET \/secrets` is missing/);
    expect(() => server.route({ method: ["GET", "PUT"], url: "/health", handler: async () => "" })).toThrow(
      /`PUT \/health`/,
    );
    expect(() => server.all("/health", async () => "")).toThrow(/missing/);
    await expect(
      server.register(async (inner) => void inner.get("/x", async () => ""), { prefix: "/y" }),
    ).rejects.toThrow(/`GET \/y\/x`/);
  });

  test("gives routes the owner of a request, but not on public ones", async () => {
    const server = bare();
    server.get("/threads", async (request) => [principalOf(request), ownerOf(request)]);
    server.get("/health", async (request) => ownerOf(request));
    expect((await server.inject("/threads")).json()).toEqual([
      { tenant: "acme", user: "ada", scopes: ["read"] },
      { tenant: "acme", user: "ada" },
    ]);
    expect((await server.inject("/health")).json()).toMatchObject({ status: 500, code: "internal" });
  });

  test("keeps concurrent requests of different users apart", async () => {
    const { url } = await guarded(async ({ headers }) => ({
      ...{ tenant: "t", user: String(headers["x-name"]) },
      scopes: ["read"],
    }));
    await Promise.all(
      Array.from({ length: 100 }, async (_, n) => {
        const { body } = await answerTo(`${url}/threads/t`, { headers: { "x-name": `u${n}` } });
        expect(body).toMatchObject({ user: `u${n}` });
      }),
    );
  });
});

describe("scopes", () => {
  test("include only themselves", () => {
    for (const scope of Scope.options)
      for (const other of Scope.options) {
        const ask = () => requireScope({ tenant: "t", user: "u", scopes: [scope] }, other);
        if (scope === other) ask();
        else expect(ask).toThrow(`\`${other}\``);
      }
  });

  test("are required for every change: only reading is possible with `read` alone", async () => {
    const { paths } = parse(await readFile("openapi.yaml", "utf8")) as { paths: Record<string, object> };
    const changing = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).flatMap((method) => (method === "get" ? [] : { method, path })),
    );
    expect(changing.length).toBeGreaterThan(15);
    const others = changing.flatMap(({ method, path }) => {
      const access = accessOf(
        method.toUpperCase(),
        path.replace("files/{path}", "files/*").replace(/\{(\w+)\}/g, ":$1"),
      );
      return access === "run" ? [] : [`${method} ${path}: ${access}`];
    });
    const reading = (path: string) => `post /langgraph/${path}: read`;
    expect(others).toEqual([
      // It computes times and stores nothing.
      "post /schedules/preview: read",
      "post /tools: tools",
      "post /tools/{name}/try: tools",
      "patch /tools/{name}: tools",
      "delete /tools/{name}: tools",
      // Its address is the credential.
      "post /tool-results/{token}: public",
      // `manage` is `admin` within the tenant, or `operator`.
      "post /admin/webhooks: manage",
      "put /admin/webhooks/{webhook_id}: manage",
      "delete /admin/webhooks/{webhook_id}: manage",
      "post /admin/webhooks/{webhook_id}/rotate: manage",
      "post /admin/webhooks/{webhook_id}/test: manage",
      "post /admin/webhooks/{webhook_id}/deliveries/{delivery_id}/send: manage",
      "put /admin/connections/{connection_id}: manage",
      "delete /admin/connections/{connection_id}: manage",
      "post /admin/connections/{connection_id}/authorize: manage",
      "post /admin/keys: manage",
      "post /admin/keys/{key_id}/revoke: manage",
      "post /admin/tenants/{tenant}/users/{user}/threads/{thread_id}/runs/{run_id}/cancel: manage",
      "post /admin/backup: operator",
      "delete /admin/engines/{engine}: operator",
      "delete /admin/tenants/{tenant}/users/{user}: manage",
      "post /hooks/{address}: public",
      // Searches and streams that are asked for with a body. What runs an agent there still takes `run`.
      ...["assistants/search", "assistants/count", "threads/search", "threads/count"].map(reading),
      ...["threads/{thread_id}/state/checkpoint", "threads/{thread_id}/history"].map(reading),
      ...["runs/crons/search", "runs/crons/count", "threads/{thread_id}/stream/events"].map(reading),
      ...["post /ag-ui/agent/{agent}/connect: read", "post /mcp: read", "delete /mcp: read"],
      "post /a2a/{agent}: read",
      // For who may read, to read.
      "post /tickets: read",
    ]);
  });

  test("of streams and files are those for which tickets exist", () => {
    const paths = ["/events", "/threads/t/events", "/threads/t/runs/r/events", "/backend/files/a%20b.png"];
    const others = ["/threads/t", "/backend", "/backend/files/", "/backend/files/a?agent=b"];
    const routes = [
      "/events",
      "/threads/:thread_id/events",
      "/threads/:thread_id/runs/:run_id/events",
      "/backend/files/*",
    ];
    expect(paths.filter((path) => !TICKET_PATH.test(path))).toEqual([]);
    expect(others.filter((path) => TICKET_PATH.test(path))).toEqual([]);
    expect(routes.map((route) => accessOf("GET", route))).toEqual(Array(4).fill("ticket"));
  });
});

describe("without authentication", () => {
  const authenticate = createAuthenticate(AuthConfig.parse({}), memoryApiKeys().find);

  test("everyone is the same user with all scopes", async () => {
    const { url } = await guarded(authenticate);
    const everybody = { tenant: "default", user: "default", scopes: Scope.options };
    expect(await answerTo(`${url}/threads/t`)).toMatchObject({ status: 200, body: everybody });
    const headers = { "x-skein-user": "eve", authorization: "Bearer x", "x-api-key": "x" };
    expect((await answerTo(`${url}/threads/t`, { headers })).body).toEqual(everybody);
  });

  test.each([
    [200, ["localhost", "LOCALHOST:8000", "127.0.0.1", "127.1.2.3:1", "[::1]", "[::1]:8000"]],
    [
      403,
      ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0", "[::]"],
    ],
    [403, ["localhost:x", "evil.example:127.0.0.1", "localhost, evil.example", "127.0.0.1@evil.example"]],
  ])("returns %i to clients that use the name %j", async (status, hosts) => {
    const server = fastify();
    onTestFinished(() => server.close());
    server.setErrorHandler<Error>(sendProblem);
    server.addHook("onRequest", refuseForeignHosts({ hosts: [] }));
    server.get("/threads", async () => "ok");
    for (const host of hosts)
      expect((await server.inject({ url: "/threads", headers: { host } })).statusCode, host).toBe(status);
  });
});

describe("pages of other sites", () => {
  const APP = "https://app.example.com";
  const server = () => {
    const bare = fastify();
    onTestFinished(() => bare.close());
    bare.setErrorHandler<Error>(sendProblem);
    const trustedProxies = ["10.0.0.5"];
    const publicUrl = "https://skein.example.com/agents";
    bare.addHook("onRequest", refuseCrossSiteWrites({ origins: [APP], trustedProxies, publicUrl }));
    bare.route({ method: ["GET", "POST", "DELETE"], url: "/threads", handler: async () => "ok" });
    return bare;
  };

  test.each([
    ["a program, which says nothing of pages", {}, 200],
    ["our own page", { "sec-fetch-site": "same-origin", origin: "http://localhost:8000" }, 200],
    ["a typed address", { "sec-fetch-site": "none" }, 200],
    ["a page of a site that may", { "sec-fetch-site": "cross-site", origin: APP }, 200],
    ["a page of another site", { "sec-fetch-site": "cross-site", origin: "https://evil.example" }, 403],
    ["a page of another port", { "sec-fetch-site": "same-site", origin: "http://localhost:1" }, 403],
    ["a page that hides where it is from", { "sec-fetch-site": "cross-site", origin: "null" }, 403],
    ["a page that does not say", { "sec-fetch-site": "cross-site" }, 403],
    ["our own page, over plain HTTP", { origin: "http://intranet:8000", host: "intranet:8000" }, 200],
    ["our own page, behind a gateway", { origin: "https://skein.local", host: "skein.local:443" }, 200],
    ["a page of the public URL", { origin: "https://skein.example.com", host: "10.0.0.9:8000" }, 200],
    ["a page of a site that may, in an old browser", { origin: APP }, 200],
    ["a page of another site, in an old browser", { origin: "https://evil.example" }, 403],
    [
      "a page of another port, in an old browser",
      { origin: "http://intranet:1", host: "intranet:8000" },
      403,
    ],
    ["a page that hides where it is from, in an old browser", { origin: "null" }, 403],
    [
      "a page that claims a forwarded host without a gateway",
      { origin: "https://evil.example", "x-forwarded-host": "evil.example" },
      403,
    ],
    [
      "a page of a site that is called alike",
      { "sec-fetch-site": "cross-site", origin: `${APP}.evil.example` },
      403,
    ],
  ])("%s", async (_, headers, status) => {
    for (const method of ["POST", "DELETE"] as const)
      expect((await server().inject({ method, url: "/threads", headers })).statusCode).toBe(status);
    expect((await server().inject({ url: "/threads", headers })).statusCode).toBe(200);
  });

  test("a trusted proxy provides the host by which the page reached it", async () => {
    const headers = { origin: "https://skein.local", host: "backend", "x-forwarded-host": "skein.local" };
    const from = (remoteAddress: string) =>
      server().inject({ method: "POST", url: "/threads", headers, remoteAddress });
    expect((await from("10.0.0.5")).statusCode).toBe(200);
    expect((await from("10.0.0.6")).statusCode).toBe(403);
  });
});
