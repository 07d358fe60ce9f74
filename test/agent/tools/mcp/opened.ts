// MCP servers for a test, closed when it has finished; then none of their processes may be left.

import { randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, vi } from "vitest";
import type { z } from "zod";
import { textOf, toolMessages } from "../../../../src/agent/core/message.ts";
import { McpServerDefinitions } from "../../../../src/agent/tools/mcp/options.ts";
import { createMcpServers, type McpServers } from "../../../../src/agent/tools/mcp/servers.ts";
import { type Play, play } from "../../../support/agent.ts";

const HOSTILE = fileURLToPath(new URL("../../../fixtures/mcp/hostile.ts", import.meta.url));

type Definition = z.input<typeof McpServerDefinitions>[string];

export interface Opened extends McpServers {
  readonly definitions: McpServerDefinitions;
  /** Everything that was logged, a line each. */
  readonly log: string[];
  /** Of the servers' processes that live. */
  processes(): Promise<number[]>;
  /** Fails when a process is left. */
  end(): Promise<void>;
}

/** With the tools listed. Ended when the test has finished. */
export async function opened(definitions: Record<string, Definition>): Promise<Opened> {
  const servers = await open(definitions);
  onTestFinished(servers.end);
  return servers;
}

/** The same, ended by the caller. */
export async function open(definitions: Record<string, Definition>): Promise<Opened> {
  const mark = randomUUID();
  const log: string[] = [];
  const write = (level: string) => (details: object, message: string) =>
    void log.push(`${level} ${message} ${JSON.stringify(details)}`);
  const marked = Object.entries(definitions).map(([name, each]) => [
    name,
    "command" in each ? { ...each, env: { ...each.env, TEST_MARK: mark } } : each,
  ]);
  const parsed = McpServerDefinitions.parse(Object.fromEntries(marked));
  const servers = createMcpServers(parsed, {
    logger: { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") },
    version: "1",
    connections: () => undefined,
  });
  const processes = () => processesWith(mark);
  const end = async () => {
    await servers.close();
    expect(await processes()).toEqual([]);
  };
  await servers.listed();
  return { ...servers, definitions: parsed, log, processes, end };
}

export const hostile = (mode = "normal", more: Partial<Definition> = {}): Definition => ({
  command: process.execPath,
  args: [HOSTILE, mode],
  ...more,
});

export const published = (name: string, ...args: string[]): Definition => ({
  command: process.execPath,
  args: [
    fileURLToPath(new URL(`../../../../node_modules/@modelcontextprotocol/${name}`, import.meta.url)),
    ...args,
  ],
});

export const namesOf = (servers: McpServers) => servers.tools().map(({ name }) => name);

/** One call in a run of its own: what the thread holds of it, and what was shown while it went on. */
export async function call(
  servers: McpServers,
  tool: string,
  args: Record<string, unknown> = {},
  more: Play = {},
) {
  const script = [{ call: [{ tool, args }] }, { say: "ok" }];
  const { messages, events, outcome } = await play({ tools: servers.tools(), script, ...more });
  const [message] = toolMessages(messages);
  const shown = events.flatMap((event) => (event.event === "on_tool_progress" ? [event.data.output] : []));
  return {
    content: message?.content ?? "",
    text: textOf(message?.content ?? ""),
    error: message?.error,
    shown,
    outcome,
  };
}

/** With this text in their environment. */
export async function processesWith(mark: string): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const environments = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/environ`, "latin1").catch(() => "")),
  );
  return pids.filter((_, index) => environments[index]?.includes(mark)).map(Number);
}

/** For what comes in its own time. */
export const eventually = (check: () => unknown) => vi.waitFor(check, { timeout: 60_000, interval: 20 });
