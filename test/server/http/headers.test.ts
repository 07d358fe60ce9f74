import { hash } from "node:crypto";
import { fastifySSE } from "@fastify/sse";
import fastify from "fastify";
import { describe, expect, onTestFinished, test } from "vitest";
import { unauthorized } from "../../../src/server/auth/credentials.ts";
import { guard } from "../../../src/server/auth/guard.ts";
import { createTickets } from "../../../src/server/auth/tickets.ts";
import { browserHeaders } from "../../../src/server/http/browser-security.ts";
import { sendProblem } from "../../../src/server/http/errors.ts";
import { docsRoutes } from "../../../src/server/http/routes/operations.ts";
import { withZod } from "../../../src/server/http/validation.ts";
import { ENDLESS_CREDENTIALS } from "../../support/credentials.ts";
import { startServer } from "../../support/server.ts";
import { post } from "../../support/sse.ts";

const APP = "https://app.example.com";

async function served(origins: readonly string[] = [], isOpen = true) {
  const server = fastify({ exposeHeadRoutes: false });
  onTestFinished(() => server.close());
  server.setErrorHandler<Error>(sendProblem);
  await browserHeaders(server, origins);
  guard(server, {
    authenticate: async () => {
      if (isOpen) return { tenant: "t", user: "u", scopes: ["read", "run"] };
      throw unauthorized("Refused.");
    },
    tickets: createTickets(undefined),
    credentials: ENDLESS_CREDENTIALS,
  });
  await server.register(fastifySSE, { heartbeatInterval: 0 });
  server.get("/events", { sse: "manual" }, async (_request, reply) => {
    await reply.sse.send({ event: "x", data: { a: 1 } });
  });
  server.post("/threads", async (_request, reply) => reply.code(201).send({}));
  docsRoutes(withZod(server));
  return server.listen({ port: 0 });
}

const preflight = (origin: string) => ({
  method: "OPTIONS",
  headers: {
    ...{ origin, "access-control-request-method": "POST" },
    "access-control-request-headers": "authorization,content-type",
  },
});

/** A policy's sources by its directives. */
function policyOf(response: Response): Map<string, string[]> {
  const directives = response.headers.get("content-security-policy")?.split(";") ?? [];
  return new Map(
    directives.map((directive) => {
      const [name = "", ...sources] = directive.trim().split(" ");
      return [name, sources];
    }),
  );
}

describe("every response", () => {
  test.each(["/docs", "/events", "/nowhere"])("has the security headers: %s", async (path) => {
    const response = await fetch((await served()) + path);
    await response.text();
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
      // What is in an address, such as a ticket, goes nowhere with a link.
      "referrer-policy": "no-referrer",
      "cross-origin-resource-policy": "same-origin",
    });
    expect(policyOf(response).get("frame-ancestors")).toEqual(["'none'"]);
    // Plain HTTP works: nothing is sent elsewhere, or kept in mind.
    expect(policyOf(response).has("upgrade-insecure-requests")).toBe(false);
    expect(response.headers.has("strict-transport-security")).toBe(false);
    expect([...response.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
  });

  test("keeps the content type of an event stream", async () => {
    const response = await fetch(`${await served()}/events`);
    expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
    expect(await response.text()).toContain('data: {"a":1}');
  });

  test("lets the server's own pages work, and runs no other script", async () => {
    const url = await served();
    const response = await fetch(`${url}/docs`);
    const page = await response.text();
    const policy = policyOf(response);
    const inline = [...page.matchAll(/<script type="module">([\s\S]*?)<\/script>/g)].map(
      ([, code = ""]) => code,
    );
    expect(inline.length).toBeGreaterThan(0);
    const allowed = inline.map((code) => `'sha256-${hash("sha256", code, "base64")}'`);
    expect(policy.get("script-src")).toEqual(["'self'", ...allowed]);
    for (const [, address = ""] of page.matchAll(/(?:src|href)="(?!data:,")([^"]+)"/g))
      expect(new URL(address, url).origin, address).toBe(new URL(url).origin);
    expect(page).not.toMatch(/ on\w+=/);
    expect(policy.get("style-src")).toContain("'unsafe-inline'");
    expect(policy.get("img-src")).toContain("data:");
    // For what the page asks of the server.
    expect(policy.has("connect-src")).toBe(false);
    expect(policy.get("default-src")).toEqual(["'self'"]);
  });
});

describe("caches between server and user", () => {
  const cacheControl = async (url: string, init?: RequestInit) => {
    const response = await fetch(url, init);
    await response.body?.cancel();
    return response.headers.get("cache-control");
  };

  test("keep no response, file, event stream or refusal", async () => {
    const { url } = await startServer();
    const run = await post(`${url}/threads/t/runs`, { input: "go" });
    await run.ended();
    expect(run.headers.get("cache-control")).toBe("no-store");
    const file = `${url}/backend/files/notes.txt`;
    expect(await cacheControl(file, { method: "PUT", body: "mine" })).toBe("no-store");
    const response = await fetch(file);
    expect(await response.text()).toBe("mine");
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(response.headers.get("last-modified")).toMatch(/GMT$/);
    for (const path of ["/threads", "/threads/t/messages", "/threads/nope", "/nowhere"])
      expect(await cacheControl(url + path), path).toBe("no-store");
    const body = JSON.stringify({ path: "/events" });
    const ticket = { method: "POST", body, headers: { "content-type": "application/json" } };
    expect(await cacheControl(`${url}/tickets`, ticket)).toBe("no-store");
    const stranger = await cacheControl(`${url}/threads`, { headers: { "sec-fetch-site": "cross-site" } });
    expect(stranger).toBe("no-store");
  });

  test("can keep the scripts of the documentation", async () => {
    const { url } = await startServer();
    expect(await cacheControl(`${url}/docs/swagger-ui.css`)).toBe("max-age=86400");
  });
});

describe("pages of other sites", () => {
  test("can read nothing unless they are configured", async () => {
    const url = await served();
    const response = await fetch(`${url}/events`, { headers: { origin: APP } });
    await response.text();
    expect(response.headers.has("access-control-allow-origin")).toBe(false);
    const asked = await fetch(`${url}/threads`, preflight(APP));
    await asked.text();
    expect([asked.status, asked.headers.has("access-control-allow-origin")]).toEqual([404, false]);
  });

  test("can read responses, streams and refusals if they are configured", async () => {
    for (const [isOpen, status] of [
      [true, 200],
      [false, 401],
    ] as const) {
      const url = await served(["https://first.example", APP], isOpen);
      const response = await fetch(`${url}/events`, { headers: { origin: APP } });
      await response.text();
      expect(response.status).toBe(status);
      expect(response.headers.get("access-control-allow-origin")).toBe(APP);
      expect(response.headers.get("vary")).toContain("Origin");
      expect(response.headers.get("access-control-expose-headers")).toContain("Location");
      // No cookie is ever a credential here.
      expect(response.headers.has("access-control-allow-credentials")).toBe(false);
    }
  });

  test("get preflight responses without credentials if they are configured", async () => {
    const response = await fetch(`${await served([APP], false)}/threads`, preflight(APP));
    await response.text();
    expect(response.status).toBe(204);
    expect(response.headers.get("access-control-allow-origin")).toBe(APP);
    expect(response.headers.get("access-control-allow-methods")).toContain("POST");
    const headers = response.headers.get("access-control-allow-headers") ?? "";
    for (const name of [
      ...["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"],
      ...["Traceparent", "Baggage", "Sentry-Trace"],
    ])
      expect(headers).toContain(name);
  });

  test.each([
    "https://evil.example",
    "https://app.example.com.evil.example",
    "http://app.example.com",
    "null",
  ])("cannot read them if they are not named: %s", async (origin) => {
    const url = await served([APP]);
    for (const init of [preflight(origin), { headers: { origin } }]) {
      const response = await fetch(`${url}/events`, init);
      await response.text();
      expect(response.headers.has("access-control-allow-origin")).toBe(false);
    }
  });
});
