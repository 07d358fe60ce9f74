import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { hostList } from "../../../../src/lib/hosts.ts";
import { createPublicFetch } from "../../../../src/lib/ssrf-safe-fetch/index.ts";
import { type Heard, httpServer, json } from "../../../support/hostile.ts";
import { call, OK } from "./caller.ts";

describe("a retry", () => {
  const FAILS = json({ error: "Busy." }, 503);
  const BREAKS = (_: Heard, response: ServerResponse) => response.socket?.resetAndDestroy();

  test.each([
    ["a busy server", FAILS],
    ["a connection that broke", BREAKS],
    ["too many calls", json({}, 429)],
  ])("follows %s if the tool allows retries, with the same key and body", async (_, first) => {
    for (const tool of [{ idempotent: true }, { annotations: { read_only: true } }]) {
      const server = await httpServer([first, OK]);
      expect((await call(server.url, { tool })).answer).toMatchObject({ content: "4 degrees" });
      const [one, two] = server.heard;
      expect(server.heard).toHaveLength(2);
      expect(two?.headers["idempotency-key"]).toBe(one?.headers["idempotency-key"]);
      expect(two?.body).toBe(one?.body);
    }
  });

  test.each([
    ["a busy server", FAILS, "The tool's server returned HTTP 503: Busy."],
    ["a connection that broke", BREAKS, "The call's effect is unknown."],
  ])("never follows %s if the tool does not allow retries", async (_, first, sentence) => {
    const server = await httpServer([first, OK]);
    expect((await call(server.url)).answer?.error).toContain(sentence);
    expect(server.heard).toHaveLength(1);
  });

  test("never follows a decision of the tool's server", async () => {
    const server = await httpServer([json({ error: "Bad." }, 500), OK]);
    const { answer } = await call(server.url, { tool: { idempotent: true } });
    expect(answer?.error).toContain("HTTP 500: Bad.");
    expect(server.heard).toHaveLength(1);
  });

  test("happens at most three times", async () => {
    const server = await httpServer(FAILS);
    const { answer } = await call(server.url, { tool: { idempotent: true } });
    expect(answer?.error).toContain("HTTP 503");
    expect(server.heard).toHaveLength(3);
  });

  test("is possible for every tool if nothing had been sent", async () => {
    const server = await httpServer(OK);
    let connected = 0;
    const flaky = createPublicFetch({
      allow: hostList("tool.internal"),
      // The same port, but no listener the first time: 127.0.0.2 is this machine too.
      resolve: async () => [connected++ === 0 ? "127.0.0.2" : "127.0.0.1"],
    });
    const url = `http://tool.internal:${server.port}/`;
    expect((await call(url, { services: { fetch: flaky } })).answer).toMatchObject({ content: "4 degrees" });
    expect(connected).toBe(2);
  });

  test("waits as long as Retry-After says", async () => {
    const server = await httpServer([json({}, 429, { "retry-after": "1" }), OK]);
    const started = performance.now();
    expect((await call(server.url, { tool: { idempotent: true } })).answer).toMatchObject({
      content: "4 degrees",
    });
    expect(performance.now() - started).toBeGreaterThan(990);
  });

  test.each([
    ["seconds", () => "600"],
    ["a date", () => new Date(Date.now() + 600_000).toUTCString()],
  ])("does not wait beyond the call's time: %s", async (_, after) => {
    const server = await httpServer([json({ error: "Later." }, 429, { "retry-after": after() }), OK]);
    const { answer } = await call(server.url, { tool: { idempotent: true, timeout_ms: 200_000 } });
    expect(answer?.error).toContain("HTTP 429: Later.");
    expect(server.heard).toHaveLength(1);
  });
});
