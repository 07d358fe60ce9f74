// What a server that is a program sees of this machine, and what is left of it.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import type { StdioServer } from "../../../../src/agent/tools/mcp/options.ts";
import { StdioTransport } from "../../../../src/agent/tools/mcp/stdio.ts";
import { call, eventually, hostile, namesOf, opened, processesWith } from "./opened.ts";

test("a server sees no environment variable of Skein but PATH, HOME and LANG", async () => {
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv("ANTHROPIC_API_KEY", "not-for-servers");
  const servers = await opened({ a: hostile("normal", { env: { GREETING: "hello" } }) });
  const seen = JSON.parse((await call(servers, "mcp__a__environment")).text);
  expect(seen).toMatchObject({ GREETING: "hello", PATH: process.env.PATH });
  const known = ["PATH", "HOME", "LANG", "PWD", "GREETING", "TEST_MARK", "SKEIN_MCP", "SHLVL", "_", "OLDPWD"];
  expect(Object.keys(seen).filter((name) => !known.includes(name))).toEqual([]);
});

test("a secret that a server received is masked in its output", async () => {
  const servers = await opened({ a: hostile("normal", { env: { API_TOKEN: "tok-123456" } }) });
  expect((await call(servers, "mcp__a__leak")).text).toBe("my token is ***");
});

test("servers end when this process is killed, even if they resist", async () => {
  const mark = randomUUID();
  const { command, args } = hostile("stays") as { command: string; args: string[] };
  const definition = JSON.stringify({ a: { command, args, env: { TEST_MARK: mark } } });
  const owner = spawn(process.execPath, [OWNER, definition], { stdio: ["ignore", "pipe", "inherit"] });
  await once(owner.stdout, "data");
  expect((await processesWith(mark)).length).toBeGreaterThan(0);
  owner.kill("SIGKILL");
  await eventually(async () => expect(await processesWith(mark)).toEqual([]));
});

test("a program that has closed its servers ends by itself", async () => {
  const { command, args } = hostile("normal") as StdioServer;
  const definition = JSON.stringify({ a: { command, args, connect_timeout: "1h" } });
  const program = spawn(process.execPath, [OWNER, definition, "close"], { stdio: "inherit" });
  onTestFinished(() => void program.kill("SIGKILL"));
  expect(await once(program, "exit")).toEqual([0, null]);
});

const OWNER = fileURLToPath(new URL("../../../fixtures/mcp/owner.ts", import.meta.url));

test("a server with an unchanged definition is kept, and the others are ended", async () => {
  const servers = await opened({ kept: hostile(), gone: hostile() });
  const before = await servers.processes();
  const gone = servers.tools().filter(({ name }) => name.startsWith("mcp__gone__"));
  const { gone: _, ...others } = servers.definitions;
  await servers.replace(others);
  const after = await servers.processes();
  expect(namesOf(servers).every((name) => name.startsWith("mcp__kept__"))).toBe(true);
  expect(after.length).toBe(before.length / 2);
  expect(before).toEqual(expect.arrayContaining(after));
  const { error } = await call({ ...servers, tools: () => gone }, "mcp__gone__echo");
  expect(error).toBe("MCP server `gone` is no longer configured.");
});

test.each(["close", "kill"] as const)(
  "a server ends even if it is ended while it starts (%s)",
  async (end) => {
    const mark = randomUUID();
    const server = hostile("normal", { env: { TEST_MARK: mark } }) as StdioServer;
    const transport = new StdioTransport(server, () => {});
    onTestFinished(() => transport.kill());
    const started = transport.start();
    await transport[end]();
    await started;
    await eventually(async () => expect(await processesWith(mark)).toEqual([]));
  },
);

test("a call in progress when the servers close ends with a readable error", async () => {
  const servers = await opened({ a: hostile() });
  const running = call(
    servers,
    "mcp__a__forget",
    {},
    {
      onEvent: ({ event }) => event === "on_tool_start" && void servers.close(),
    },
  );
  expect((await running).error).toBe("MCP server `a` is no longer configured.");
});
