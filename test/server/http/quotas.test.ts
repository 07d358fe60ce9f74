import { request } from "node:http";
import type { AddressInfo } from "node:net";
import { fastifySSE } from "@fastify/sse";
import fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import type { z } from "zod";
import { QuotaConfig } from "../../../src/engine/quotas/config.ts";
import { createQuotas } from "../../../src/engine/quotas/index.ts";
import { openMemoryQuotas } from "../../../src/engine/stores/sqlite/quotas.ts";
import { guard, limitRequests } from "../../../src/server/auth/guard.ts";
import type { Principal } from "../../../src/server/auth/principal.ts";
import { createTickets } from "../../../src/server/auth/tickets.ts";
import { sendProblem } from "../../../src/server/http/errors.ts";
import { usageRoutes } from "../../../src/server/http/routes/usage.ts";
import { createStreams } from "../../../src/server/http/sse.ts";
import { withZod } from "../../../src/server/http/validation.ts";
import { ENDLESS_CREDENTIALS } from "../../support/credentials.ts";

async function* endless(signal: AbortSignal) {
  yield [{ event: "open", data: "{}" }];
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
}

/** A server with `GET /usage`, a public `GET /health`, and an endless stream at `GET /events`. */
async function serve(config: z.input<typeof QuotaConfig>, scopes: Principal["scopes"] = ["read"]) {
  const store = openMemoryQuotas().quotas;
  const quotas = createQuotas(store, QuotaConfig.parse(config), { threadMs: 3_600_000 });
  const server = fastify();
  onTestFinished(() => server.close());
  server.setErrorHandler<Error>(sendProblem);
  const authenticate = async ({ headers }: { headers: Record<string, unknown> }) => ({
    ...{ tenant: "acme", user: String(headers["x-user"] ?? "ada"), scopes },
  });
  const credentials = ENDLESS_CREDENTIALS;
  guard(server, { authenticate, tickets: createTickets(undefined), credentials });
  limitRequests(server, quotas);
  await server.register(fastifySSE, { serializer: (data: string) => data });
  const app = withZod(server);
  const streams = createStreams(
    { streams: 10, heartbeatMs: 10_000, stallMs: 10_000 },
    { quotas, credentials, unreadResponses: { open: () => () => {} }, logger: { warn() {} } },
    false,
  );
  usageRoutes(app, { quotas });
  app.get("/health", async () => "ok");
  app.get("/events", { sse: "manual" }, async (_, reply) => {
    await streams.send(reply, endless, "comment");
  });
  await server.listen({ port: 0, host: "127.0.0.1" });
  const { port } = server.server.address() as AddressInfo; // what listens on a port has one
  const get = (path: string, user = "ada") =>
    server.inject({ method: "GET", url: path, headers: { "x-user": user } });
  return { store, quotas, get, port };
}

test("a request above the limit is refused with the limit and the retry time", async () => {
  const { get } = await serve({ user: { requests_per_minute: 2 } });
  for (let n = 0; n < 2; n++) expect((await get("/usage")).statusCode).toBe(200);
  const refused = await get("/usage");
  expect(refused.statusCode).toBe(429);
  expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
  expect(refused.json()).toMatchObject({
    ...{ code: "limit_exceeded", details: { limit: "requests_per_minute", of: "user", most: 2 } },
  });
  expect((await get("/no/such/route")).statusCode).toBe(429);
  expect((await get("/usage", "bob")).statusCode).toBe(200);
});

test("public routes count against no quota", async () => {
  const { get } = await serve({ tenant: { requests_per_minute: 1 } });
  for (let n = 0; n < 5; n++) expect((await get("/health")).statusCode).toBe(200);
  expect((await get("/usage")).statusCode).toBe(200);
  expect((await get("/usage", "bob")).statusCode).toBe(429);
});

test("usage is reported by day, agent and model, with totals and the remaining quotas", async () => {
  const { quotas, get } = await serve({
    user: { tokens_per_day: 1000 },
    prices: { "*": { input: 1, output: 10 } },
  });
  const usage = { input_tokens: 100, output_tokens: 10, cache_read_tokens: 50, cache_write_tokens: 0 };
  for (const agent of ["a", "a", "b"])
    await quotas.settle({ tenant: "acme", user: "ada" }, "1", { agent, model: "m:1", usage });
  const { items, totals, limits } = (await get("/usage?days=1")).json();
  const today = new Date().toISOString().slice(0, 10);
  expect(items).toEqual([
    {
      ...{ day: today, agent: "a", model: "m:1", calls: 2, cost: 400 },
      ...{ input_tokens: 200, output_tokens: 20, cache_read_tokens: 100, cache_write_tokens: 0 },
    },
    { ...usage, day: today, agent: "b", model: "m:1", calls: 1, cost: 200 },
  ]);
  expect(totals).toEqual({
    ...{ calls: 3, cost: 600, input_tokens: 300 },
    ...{ output_tokens: 30, cache_read_tokens: 150, cache_write_tokens: 0 },
  });
  expect(limits).toMatchObject([{ limit: "tokens_per_day", of: "user", most: 1000, used: 330, left: 670 }]);
  expect((await get("/usage", "bob")).json()).toMatchObject({ items: [], totals: { calls: 0 } });
});

test("a cost limit is reported in millionths and in units of the currency, as in a refusal", async () => {
  const { quotas, get } = await serve({
    user: { tokens_per_day: 10_000_000, cost_per_day: 2 },
    currency: "EUR",
    prices: { "*": { input: 1, output: 10 } },
  });
  const ada = { tenant: "acme", user: "ada" };
  const usage = { input_tokens: 2_000_000, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 };
  await quotas.settle(ada, "1", { agent: "a", model: "m:1", usage });
  const { limits, totals, currency } = (await get("/usage")).json();
  expect([totals.cost, currency]).toEqual([2_000_000, "EUR"]);
  const [tokens, cost] = limits;
  expect(cost).toMatchObject({ limit: "cost_per_day", most: 2_000_000, used: 2_000_000, left: 0 });
  expect(cost.in_units).toEqual({ most: 2, used: 2, left: 0 });
  expect(tokens).not.toHaveProperty("in_units");
  const told = { most: 2, used: 2, left: 0, currency: "EUR" };
  await expect(quotas.assertFunds(ada)).rejects.toMatchObject({ details: told });
});

test("usage requires the scope `read`, and covers at most a hundred days", async () => {
  const { get } = await serve({});
  for (const days of ["0", "101", "x", "1.5"])
    expect((await get(`/usage?days=${days}`)).statusCode).toBe(400);
  expect((await get("/usage?days=100")).statusCode).toBe(200);
  const { get: runOnly } = await serve({}, ["run"]);
  expect((await runOnly("/usage")).statusCode).toBe(403);
});

test("an admin sees the usage of all users of the tenant, and the tenant's limits", async () => {
  const { quotas, get } = await serve(
    {
      tenant: { tokens_per_day: 10_000 },
      user: { tokens_per_day: 1000 },
      prices: { "*": { input: 1, output: 10 } },
    },
    ["admin"],
  );
  const usage = { input_tokens: 100, output_tokens: 10, cache_read_tokens: 50, cache_write_tokens: 0 };
  const settle = (tenant: string, user: string) =>
    quotas.settle({ tenant, user }, "1", { agent: "a", model: "m:1", usage });
  for (const user of ["ada", "bob", "bob"]) await settle("acme", user);
  await settle("other", "eve");
  const report = (await get("/usage?of=tenant&days=1", "carol")).json();
  expect(report).toMatchObject({
    items: [{ agent: "a", model: "m:1", calls: 3, cost: 600, input_tokens: 300 }],
    totals: { calls: 3, cost: 600, output_tokens: 30 },
    users: [
      { user: "bob", calls: 2, cost: 400 },
      { user: "ada", calls: 1, cost: 200 },
    ],
    limits: [{ limit: "tokens_per_day", of: "tenant", most: 10_000, used: 330, left: 9670 }],
  });
  expect(report.limits).toHaveLength(1);
  expect(JSON.stringify(report)).not.toContain("eve");
});

test("the usage of the tenant requires the scope `admin`, and a user's own the scope `read`", async () => {
  const { get: reader } = await serve({}, ["read", "run", "tools"]);
  const refused = await reader("/usage?of=tenant");
  expect(refused.statusCode).toBe(403);
  expect(refused.json().details).toEqual({ scope: "admin" });
  expect((await reader("/usage?of=user")).json()).not.toHaveProperty("users");
  const { get: admin } = await serve({}, ["admin"]);
  expect((await admin("/usage")).statusCode).toBe(403);
  expect((await admin("/usage?of=all")).statusCode).toBe(400);
});

test("a stream counts until its viewer has left, and one above the limit is refused", async () => {
  const { get, store, port } = await serve({ user: { streams: 1 } });
  const held = async () => (await store.held({ tenant: "acme", user: "ada" })).user.streams;
  const open = () =>
    new Promise<() => void>((resolve, reject) => {
      const viewer = request({ port, host: "127.0.0.1", path: "/events" }, () =>
        resolve(() => viewer.destroy()),
      );
      viewer.on("error", reject).end();
    });
  const leave = await open();
  expect(await held()).toBe(1);
  const refused = await get("/events");
  expect(refused.statusCode).toBe(429);
  expect(refused.headers["retry-after"]).toBe("5");
  expect(refused.json().details).toMatchObject({ limit: "streams", of: "user" });
  leave();
  await expect.poll(held).toBe(0);
  (await open())();
});
