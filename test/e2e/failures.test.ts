// What the server's log says of failures: one line each, with whose it was and its cause, and no secret.

import { once } from "node:events";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { defineHook, type Hook } from "../../src/agent/core/hook.ts";
import type { Model } from "../../src/agent/core/model.ts";
import { defineTool } from "../../src/agent/core/tool.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import { dataOf } from "../support/drain.ts";
import { say } from "../support/fake-provider/script.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ServerOptions, startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";

const SECRET = "sk-proj-0123456789abcdef";
const PROMPT = "my password is swordfish";

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly err?: { readonly message: string; readonly stack: string };
  readonly [key: string]: unknown;
}

interface Logged {
  readonly events: StreamEvent[];
  /** Warnings and errors. */
  readonly lines: Line[];
  readonly ids: { run_id: string; thread_id: string; tenant: string; user: string; agent: string };
  readonly trace: { spans: { name: string; error?: { code?: string; message: string } }[] };
}

/** One run on a server, with its log: no secret and nothing that was said may be in it. */
async function logged(options: ServerOptions, prepare?: (url: string) => Promise<void>): Promise<Logged> {
  const written: string[] = [];
  const logger = pino({ level: "info" }, { write: (line: string) => written.push(line) });
  const { url } = await startServer({ ...options, logger });
  await prepare?.(url);
  const viewer = await post(`${url}/threads/t1/runs`, { input: PROMPT });
  const events = await viewer.ended();
  const location = viewer.headers.get("location") ?? "";
  const trace = await (await fetch(`${url}${location.replace("/events", "/trace")}`)).json();
  const run_id = location.split("/")[4] ?? "";
  // The line about a run's end follows the event, and is the last one.
  const isEnd = (line: string) => line.includes(`"${run_id}"`) && /"msg":"run (?:ended|failed)/.test(line);
  await expect.poll(() => written.some(isEnd)).toBe(true);
  for (const line of written) {
    expect(line).not.toContain(SECRET);
    expect(line).not.toContain(PROMPT);
  }
  const lines = written.map((line) => JSON.parse(line) as Line).filter(({ level }) => level >= 40);
  const ids = { run_id, thread_id: "t1", tenant: "default", user: "default", agent: "assistant" };
  return { events, lines, ids, trace: trace as Logged["trace"] };
}

const throwing = (message: string) => (): never => {
  throw new TypeError(message);
};

/** A hook that is switched on for every agent. */
const ownHook = (hook: Omit<Hook, "name">) =>
  defineHook({
    name: "shaky",
    options: z.strictObject({}),
    activeByDefault: () => true,
    create: () => ({ name: "shaky", ...hook }),
  });

describe("a failed run", () => {
  test("leaves one line with its cause, which the client does not see", async () => {
    const model: Model = { name: "own:m", stream: throwing("cannot read the weights") };
    const { events, lines, ids, trace } = await logged({ model });
    expect(lines).toEqual([
      expect.objectContaining({ ...ids, level: 50, msg: "run failed", code: "internal", attempt: 1 }),
    ]);
    expect(lines[0]?.err?.stack).toMatch(/TypeError: cannot read the weights[\s\S]*failures\.test\.ts/);
    expect(dataOf(events, "error")).toMatchObject([
      { code: "internal", message: "Something went wrong on the server." },
    ]);
    expect(JSON.stringify([events, trace])).not.toContain("weights");
    expect(trace.spans.map(({ name, error }) => [name, error?.code])).toEqual([
      ["run", "internal"],
      ["llm.call", "internal"],
    ]);
  });

  test("leaves one line even if its agent could not be built", async () => {
    const hook = { ...ownHook({}), create: throwing("no hook today") };
    const { lines, ids } = await logged({ hooks: [hook] });
    expect(lines).toEqual([
      expect.objectContaining({ ...ids, level: 50, msg: "run failed", code: "hook_failed" }),
    ]);
    expect(lines[0]?.err?.stack).toContain("no hook today");
  });

  test("leaves one line that names the limit it reached", async () => {
    const tool = defineTool({ name: "again", description: "", parameters: z.object({}), execute: () => "x" });
    const agents = `agents: { assistant: { model: "scripted:test", tools: [again], max_iterations: 1 } }`;
    const { lines, ids } = await logged({ agents, tools: [tool], script: [{ call: [{ tool: "again" }] }] });
    expect(lines).toEqual([
      expect.objectContaining({ ...ids, level: 40, msg: "run ended at a limit", code: "max_iterations" }),
    ]);
  });

  test("is the only one to leave a line: successful and cancelled runs do not", async () => {
    expect((await logged({})).lines).toEqual([]);
  });
});

describe("a provider with unusual replies", () => {
  /** Two runs with this reply, of a model of this name, and what all have used. */
  async function twice(model: string, choice: object, usage: object) {
    const provider = await startFakeProvider();
    onTestFinished(() => provider.close());
    const raw = [{ choices: [choice], usage }, "[DONE]"];
    provider.enqueue({ raw }, { raw });
    const at = `{ provider: openai, model: ${model}, base_url: "${provider.url}/v1", api_key: k }`;
    const agents = `agents:\n  assistant: { model: ${at} }\n`;
    let address = "";
    const seen = await logged({ agents, realModels: true }, async (url) => {
      address = url;
      await (await post(`${url}/threads/t0/runs`, { input: PROMPT })).ended();
    });
    const { totals } = (await (await fetch(`${address}/usage`)).json()) as { totals: object };
    return { ...seen, totals };
  }

  test("is named once if it ends a reply for an unknown reason", async () => {
    const choice = { delta: { content: "Here." }, finish_reason: "quite_enough" };
    const { events, lines, totals } = await twice("odd-1", choice, {
      prompt_tokens: 9,
      completion_tokens: 2,
    });
    expect(totals).not.toHaveProperty("estimated");
    expect(events.at(-1)).toMatchObject({ data: { status: "success", stop_reason: "end_turn" } });
    expect(lines).toMatchObject([{ level: 40, code: "unknown_stop_reason", model: "openai:odd-1" }]);
    expect(lines[0]?.err?.message).toContain('"quite_enough"');
  });

  test("is named once if it counts less than half of its answers; the estimate counts, and is marked", async () => {
    const choice = { delta: { content: "word ".repeat(2000) }, finish_reason: "stop" };
    const { events, lines, totals } = await twice("odd-2", choice, {
      prompt_tokens: 9,
      completion_tokens: 3,
    });
    expect(totals).toMatchObject({ calls: 2, output_tokens: 5000, estimated: true });
    const [done] = dataOf(events, "done");
    expect(done?.usage).toMatchObject({ output_tokens: 2500, estimated: true });
    expect(lines).toMatchObject([{ level: 40, code: "low_count", model: "openai:odd-2" }]);
  });
});

describe("an abandoned model", () => {
  async function asked(more: string, enqueue: (provider: FakeProvider) => void) {
    const provider = await startFakeProvider();
    onTestFinished(() => provider.close());
    enqueue(provider);
    const agents = `
agents:
  assistant:
    model:
      { provider: openai, model: gpt-5-mini, base_url: "${provider.url}/v1", api_key: ${SECRET}${more.replaceAll("URL", provider.url)} }
    hooks: { retry: { attempts: 2, base_ms: 1 } }
`;
    return logged({ agents, realModels: true });
  }
  const FALLBACK = `, fallback: [{ provider: anthropic, model: claude-sonnet-4-5, base_url: "URL", api_key: ${SECRET} }]`;

  test("leaves one line after all attempts if another one is called", async () => {
    const { events, lines, ids } = await asked(FALLBACK, (provider) =>
      provider.enqueue({ fail: "overloaded" }, { fail: "overloaded" }, { blocks: [say("Here.")] }),
    );
    expect(events.at(-1)).toMatchObject({ data: { status: "success" } });
    expect(lines).toEqual([
      expect.objectContaining({
        ...{ ...ids, level: 40, msg: "model given up", code: "model_overloaded" },
        ...{ model: "openai:gpt-5-mini", fallback: "anthropic:claude-sonnet-4-5" },
      }),
    ]);
  });

  test.each([
    ["http://127.0.0.1:1/v1", "model_unreachable"],
    ["http://llm-internal.corp.invalid/v1", "model_unreachable"],
  ])("shows the address %s of a network error only in the log", async (base_url, code) => {
    const agents = `
agents:
  assistant:
    model: { provider: openai, model: gpt-5-mini, base_url: "${base_url}", api_key: ${SECRET} }
    hooks: { retry: { attempts: 2, base_ms: 1 } }
`;
    const { events, trace, lines, ids } = await logged({ agents, realModels: true });
    const { host, hostname } = new URL(base_url);
    expect(dataOf(events, "error")).toMatchObject([{ code }]);
    expect(JSON.stringify([events, trace])).not.toContain(hostname);
    expect(trace.spans.map(({ error }) => error?.code)).toEqual(Array(3).fill(code));
    expect(lines).toEqual([expect.objectContaining({ ...ids, level: 50, msg: "run failed", code })]);
    expect(lines[0]?.err?.stack).toMatch(new RegExp(`${host}|${hostname}`));
  });

  test("does not show the key that it refused", async () => {
    const body = { error: { message: `Bad key ${SECRET}`, code: "authentication_error" } };
    const { lines } = await asked("", (provider) => provider.enqueue({ raw: [body] }));
    expect(lines).toMatchObject([{ msg: "run failed" }]);
    expect(lines[0]?.err?.message).toContain("Bad key");
  });
});

describe("a failing tool endpoint", () => {
  /** The run of an agent that calls a registered tool, which `answer` answers. */
  async function calling(answer: Parameters<typeof createServer>[1]) {
    const outside = createServer(answer);
    outside.listen(0, "127.0.0.1");
    await once(outside, "listening");
    onTestFinished(() => void outside.close().closeAllConnections());
    const { port } = outside.address() as { port: number };
    const tool = {
      ...{ name: "look_up", description: "Looks it up.", parameters: { type: "object" } },
      ...{ callback_url: `http://127.0.0.1:${port}/?key=${SECRET}`, headers: { "x-key": SECRET } },
    };
    const headers = { "content-type": "application/json" };
    return logged(
      {
        agents: `agents: { assistant: { model: "scripted:test", tools: ["look_*"] } }`,
        script: [{ call: [{ tool: "look_up", args: { what: PROMPT } }] }, { say: "It did not work." }],
        config: { http_tools: { allow: `127.0.0.1:${port}` } },
      },
      async (url) => {
        const init = { method: "POST", headers, body: JSON.stringify(tool) };
        expect((await fetch(`${url}/tools`, init)).status).toBe(201);
      },
    );
  }
  const line = { level: 40, msg: "tool endpoint failed", tool: "look_up", call_id: "call_1_1" };

  test("leaves one line for a status, without the response", async () => {
    const { events, lines, ids, trace } = await calling(({ headers }, reply) => {
      reply.writeHead(500, { "content-type": "application/json" });
      reply.end(JSON.stringify({ error: `I was sent ${headers["x-key"]}` }));
    });
    expect(events.at(-1)).toMatchObject({ data: { status: "success" } });
    expect(lines).toEqual([expect.objectContaining({ ...ids, ...line, code: "http_500" })]);
    expect(trace.spans.find(({ name }) => name === "tool.call")?.error?.message).toContain("HTTP 500");
  });

  test("leaves one line with the cause for a closed connection", async () => {
    const { lines, ids } = await calling(({ socket }) => socket.destroy());
    expect(lines).toEqual([expect.objectContaining({ ...ids, ...line, code: "broken" })]);
    expect(lines[0]?.err?.stack).toMatch(/caused by/);
  });

  test("leaves none for its own error, which the model sees", async () => {
    const { lines } = await calling((_, reply) => {
      reply.writeHead(200, { "content-type": "application/json" });
      reply.end(JSON.stringify({ error: "There is no such word." }));
    });
    expect(lines).toEqual([]);
  });

  test("leaves one line for an MCP server, in addition to the log of the server", async () => {
    const program = JSON.stringify(fileURLToPath(new URL("../fixtures/mcp/hostile.ts", import.meta.url)));
    const agents = `
agents: { assistant: { model: "scripted:test", tools: ["mcp__odd__*"] } }
mcp_servers: { odd: { command: ${JSON.stringify(process.execPath)}, args: [${program}, normal], env: { API_KEY: ${SECRET} } } }`;
    const script = [{ call: [{ tool: "mcp__odd__crash" }] }, { say: "It did not work." }];
    const { lines, ids } = await logged({ agents, script }, async (url) => {
      const agent = async () => (await fetch(`${url}/agents/assistant`)).json();
      await expect.poll(agent).toMatchObject({ tools: expect.arrayContaining(["mcp__odd__crash"]) });
    });
    expect(lines.filter(({ call_id }) => call_id !== undefined)).toEqual([
      expect.objectContaining({ ...ids, ...line, tool: "mcp__odd__crash", code: "ended" }),
    ]);
  });
});

describe("a hook that throws", () => {
  const failing: [keyof Hook, Omit<Hook, "name">][] = [
    ["beforeAgent", { beforeAgent: throwing("I am broken") }],
    ["modifyRequest", { modifyRequest: throwing("I am broken") }],
    ["wrapModelCall", { wrapModelCall: throwing("I am broken") }],
    ["onStop", { onStop: throwing("I am broken") }],
    [
      "wrapModelCall",
      {
        async *wrapModelCall(request, next) {
          yield* next(request);
          throw new TypeError("I am broken");
        },
      },
    ],
  ];

  test.each(failing)("in %s fails the run under its name, with one line", async (_, hook) => {
    const { events, lines, ids, trace } = await logged({ hooks: [ownHook(hook)] });
    const message = "Hook `shaky` failed: I am broken";
    expect(dataOf(events, "error")).toMatchObject([{ code: "hook_failed", message }]);
    expect(trace.spans[0]).toMatchObject({ name: "run", error: { code: "hook_failed", message } });
    expect(lines).toEqual([
      expect.objectContaining({ ...ids, level: 50, msg: "run failed", code: "hook_failed" }),
    ]);
    expect(lines[0]?.err?.stack).toMatch(/TypeError: I am broken[\s\S]*failures\.test\.ts/);
  });

  test("is not blamed for errors that it passes on", async () => {
    const model: Model = { name: "own:m", stream: throwing("cannot read the weights") };
    const hook = ownHook({ wrapModelCall: (request, next) => next(request) });
    const { lines } = await logged({ model, hooks: [hook] });
    expect(lines).toMatchObject([{ code: "internal" }]);
  });

  const tool = defineTool({
    ...{ name: "look", description: "", parameters: z.object({}) },
    execute: throwing("I see nothing"),
  });
  const withTool = {
    agents: `agents: { assistant: { model: "scripted:test", tools: [look] } }`,
    script: [{ call: [{ tool: "look" }] }, { say: "Well." }],
  };

  test("around a tool call makes the call fail, with one line that names the hook and the call", async () => {
    const hook = ownHook({ wrapToolCall: throwing("I am broken") });
    const { events, lines, ids, trace } = await logged({ ...withTool, tools: [tool], hooks: [hook] });
    expect(dataOf(events, "on_tool_end")).toMatchObject([{ error: "I am broken" }]);
    expect(lines).toEqual([
      expect.objectContaining({
        ...{ ...ids, level: 40, msg: "hook failed", code: "hook_failed" },
        ...{ hook: "shaky", tool: "look", call_id: "call_1_1" },
      }),
    ]);
    expect(lines[0]?.err?.stack).toContain("failures.test.ts");
    expect(trace.spans.find(({ name }) => name === "tool.call")).toMatchObject({
      error: { message: "I am broken" },
    });
  });

  test("around a tool call is not blamed for the tool's errors", async () => {
    const hook = ownHook({ wrapToolCall: (request, next) => next(request) });
    const { events, lines } = await logged({ ...withTool, tools: [tool], hooks: [hook] });
    expect(dataOf(events, "on_tool_end")).toMatchObject([{ error: "I see nothing" }]);
    expect(lines).toEqual([]);
  });

  test("after the run causes a warning and one line", async () => {
    const hook = ownHook({ afterAgent: throwing("I am broken") });
    const { events, lines, ids } = await logged({ hooks: [hook] });
    expect(dataOf(events, "warning")).toMatchObject([{ code: "hook_failed" }]);
    expect(lines).toEqual([
      expect.objectContaining({ ...ids, level: 40, msg: "hook failed", hook: "shaky", code: "hook_failed" }),
    ]);
  });
});
