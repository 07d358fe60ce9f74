// MCP's own client against the whole server.

import {
  Client,
  type ElicitRequest,
  type ElicitResult,
  type Progress,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import type { Script, Turn } from "../../../src/models/scripted.ts";
import { gate, gated, WITH_GATE } from "../../support/gate.ts";
import { startServer } from "../../support/server.ts";
import { sendRaw } from "../raw.ts";
import { AGENTS } from "./agents.ts";

async function started(script: readonly Turn[] | Script, config: object = {}) {
  const { url } = await startServer({ script, agents: AGENTS, config: { wires: ["mcp"], ...config } });
  return url;
}

type Era = "legacy" | "auto";

interface Connecting {
  readonly era?: Era;
  readonly headers?: Record<string, string>;
  /** Asks the person; a client without it shows no forms. */
  readonly ask?: (request: ElicitRequest) => ElicitResult | Promise<ElicitResult>;
  readonly fetch?: typeof fetch;
}

/** A connected client of a stock program. Closed when the test has finished. */
async function connected(url: string, { era = "legacy", headers = {}, ask, fetch: by }: Connecting = {}) {
  const client = new Client(
    { name: "test", version: "1" },
    { versionNegotiation: { mode: era }, ...(ask ? { capabilities: { elicitation: {} } } : {}) },
  );
  if (ask) client.setRequestHandler("elicitation/create", async (request) => ask(request));
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
    requestInit: { headers },
    ...(by ? { fetch: by } : {}),
    reconnectionOptions: {
      initialReconnectionDelay: 10,
      maxReconnectionDelay: 10,
      reconnectionDelayGrowFactor: 1,
      maxRetries: 5,
    },
  });
  await client.connect(transport);
  onTestFinished(() => client.close());
  return client;
}

const run = (message: string, more: object = {}) => ({
  name: "run_agent",
  arguments: { agent: "assistant", message, ...more },
});
type Result = Awaited<ReturnType<Client["callTool"]>>;
const outcomeOf = ({ structuredContent }: Result) =>
  structuredContent as {
    thread_id: string;
    run_id: string;
    status: string;
    text: string;
    interrupts?: { id: string }[];
  };
const textIn = ({ content }: Result) => (content[0]?.type === "text" ? content[0].text : "");

async function statusesOf(url: string, headers: Record<string, string> = {}): Promise<string[]> {
  const list = async (path: string) =>
    ((await (await fetch(url + path, { headers })).json()) as { items: { id: string; status: string }[] })
      .items;
  const threads = await list("/threads");
  return (await Promise.all(threads.map(({ id }) => list(`/threads/${id}/runs`)))).flatMap((runs) =>
    runs.map(({ status }) => status),
  );
}

const EXECUTES: Script = ({ messages }, call) => {
  if (call === 0) return { call: [{ tool: "execute", args: { command: "echo ran" } }] };
  const last = JSON.stringify(messages.at(-1));
  return { say: last.includes("ran\\n") ? "It ran." : last };
};
const ASKS: readonly Turn[] = [
  { call: [{ tool: "ask_user", args: { question: "Which?", options: ["red", "blue"] } }] },
  { say: "Blue it is." },
];
const SLOW: readonly Turn[] = [{ say: "a ".repeat(1000), delay_ms: 20 }];

describe.each([["legacy"], ["auto"]] as const)("an MCP client (%s)", (era) => {
  test("speaks the revision that it prefers, and finds the tools and the agents", async () => {
    const client = await connected(await started([]), { era });
    expect(client.getNegotiatedProtocolVersion()).toBe(era === "legacy" ? "2025-11-25" : "2026-07-28");
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      "run_agent",
      "answer",
      "list_agents",
      "get_run",
      "cancel_run",
    ]);
    const agent = tools[0]?.inputSchema.properties?.agent;
    expect(agent).toMatchObject({ enum: ["assistant", "writer"] });
    expect((await client.callTool({ name: "list_agents" })).structuredContent).toEqual({
      agents: [{ name: "assistant", description: "Helps." }, { name: "writer" }],
    });
  });

  test("gets an agent's answer, with progress, and continues the conversation", async () => {
    const url = await started([
      { think: "Hm.", say: "Let me see.", call: [{ tool: "current_datetime", args: { time_zone: "UTC" } }] },
      { say: "You said {{user}}." },
      { say: "And then {{user}}." },
    ]);
    const client = await connected(url, { era });
    const told: Progress[] = [];
    const first = await client.callTool(run("hello"), { onprogress: (progress) => told.push(progress) });
    expect(first.isError).toBeFalsy();
    expect(outcomeOf(first)).toMatchObject({ status: "success", text: "You said hello." });
    expect(JSON.parse(textIn(first))).toEqual(first.structuredContent);
    expect(told.map(({ message }) => message)).toEqual([
      "assistant thinks",
      "assistant calls current_datetime",
      "assistant thinks",
    ]);
    expect(told.map(({ progress }) => progress)).toEqual(
      told.map(({ progress }) => progress).toSorted((a, b) => a - b),
    );
    const { thread_id } = outcomeOf(first);
    const second = await client.callTool(run("more", { thread_id }));
    expect(outcomeOf(second)).toMatchObject({ thread_id, text: "And then more." });
  });

  test("is kept waiting by progress while an agent is silent", async () => {
    const { tool, open } = gate();
    const config = { wires: ["mcp"], streams: { heartbeat: 0.05 } };
    const { url } = await startServer({ script: gated, tools: [tool], agents: WITH_GATE, config });
    const client = await connected(url, { era });
    const told: number[] = [];
    const onprogress = ({ progress }: Progress) => {
      told.push(progress);
      if (told.length === 30) open();
    };
    const how = { timeout: 1000, resetTimeoutOnProgress: true, onprogress };
    expect(outcomeOf(await client.callTool(run("hi"), how)).text).toBe("Through.");
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    expect(new Set(told).size).toBe(told.length);
  });

  test("that shows no forms reads what waits, and answers by a tool", async () => {
    const client = await connected(await started(EXECUTES), { era });
    const asked = outcomeOf(await client.callTool(run("run it")));
    expect(asked).toMatchObject({
      status: "interrupted",
      interrupts: [{ kind: "approval", name: "execute", args: { command: "echo ran" }, prompt: "May it?" }],
    });
    const answer = { thread_id: asked.thread_id, decision: "approve" };
    const done = await client.callTool({ name: "answer", arguments: answer });
    expect(outcomeOf(done)).toMatchObject({ status: "success", text: "It ran." });
    const again = await client.callTool({ name: "answer", arguments: answer });
    expect(again.isError).toBe(true);
    expect(textIn(again)).toContain("waits for an answer");
  });

  test("denies by a tool, and the agent reads why", async () => {
    const client = await connected(await started(EXECUTES), { era });
    const { thread_id } = outcomeOf(await client.callTool(run("run it")));
    const deny = { thread_id, decision: "deny", message: "Not on a Friday." };
    expect(outcomeOf(await client.callTool({ name: "answer", arguments: deny })).text).toContain(
      "Not on a Friday.",
    );
  });

  test("that shows forms asks its person within the call", async () => {
    const asked: string[] = [];
    const client = await connected(await started(EXECUTES), {
      era,
      ask: ({ params }) => {
        asked.push(params.message);
        return { action: "accept", content: { decision: "approve" } };
      },
    });
    expect(outcomeOf(await client.callTool(run("run it")))).toMatchObject({
      status: "success",
      text: "It ran.",
    });
    expect(asked).toEqual([expect.stringContaining("May it?")]);
    expect(asked[0]).toContain("echo ran");
  });

  test.each([
    [{ action: "accept", content: { decision: "deny", reason: "Not on a Friday." } }, "Not on a Friday."],
    [{ action: "decline" }, "declined"],
    [{ action: "cancel" }, "put the question away"],
  ] as const)("whose person denies lets the agent know: %j", async (answer, words) => {
    const client = await connected(await started(EXECUTES), { era, ask: () => answer });
    expect(outcomeOf(await client.callTool(run("run it"))).text).toContain(words);
  });

  test("shows a question with its options, and returns the answer", async () => {
    let shown: unknown;
    const client = await connected(await started(ASKS), {
      era,
      ask: ({ params }) => {
        shown = params;
        return { action: "accept", content: { answer: "blue" } };
      },
    });
    expect(outcomeOf(await client.callTool(run("ask me"))).text).toBe("Blue it is.");
    expect(JSON.stringify(shown)).toContain("Which?");
    expect(JSON.stringify(shown)).toContain("red");
  });

  test("asks two questions of one run", async () => {
    const script: readonly Turn[] = [
      {
        call: [
          { tool: "ask_user", args: { question: "Which?" } },
          { tool: "ask_user", args: { question: "How many?" } },
        ],
      },
      { say: "Thanks." },
    ];
    const asked: string[] = [];
    const client = await connected(await started(script), {
      era,
      ask: ({ params }) => {
        asked.push(params.message);
        return { action: "accept", content: { answer: "two" } };
      },
    });
    expect(outcomeOf(await client.callTool(run("ask me"))).text).toBe("Thanks.");
    expect(asked).toEqual(["Which?", "How many?"]);
  });

  test("finds in a new session what an earlier one left open", async () => {
    const url = await started(ASKS);
    const { thread_id } = outcomeOf(await (await connected(url, { era })).callTool(run("ask me")));
    const fresh = await connected(url, { era });
    const found = outcomeOf(await fresh.callTool({ name: "get_run", arguments: { thread_id } }));
    expect(found).toMatchObject({ status: "interrupted", interrupts: [{ prompt: "Which?" }] });
    const answer = { thread_id, decision: "respond", message: "blue", id: found.interrupts?.[0]?.id };
    const done = await fresh.callTool({ name: "answer", arguments: answer });
    expect(outcomeOf(done).text).toBe("Blue it is.");
  });

  test("that cancels a call cancels the run, and the thread takes the next message", async () => {
    const url = await started([...SLOW, { say: "Here." }]);
    const client = await connected(url, { era });
    const cancel = new AbortController();
    const thread_id = "mine";
    const call = client.callTool(run("go", { thread_id }), {
      signal: cancel.signal,
      onprogress: () => cancel.abort(),
    });
    await expect(call).rejects.toThrow();
    await expect.poll(() => statusesOf(url)).toEqual(["cancelled"]);
    expect(outcomeOf(await client.callTool(run("again", { thread_id }))).text).toBe("Here.");
  });

  test("cancels by a tool what waits for an answer", async () => {
    const client = await connected(await started(ASKS), { era });
    const { thread_id } = outcomeOf(await client.callTool(run("ask me")));
    const cancelled = await client.callTool({ name: "cancel_run", arguments: { thread_id } });
    expect(outcomeOf(cancelled)).toMatchObject({ status: "cancelled" });
  });

  test("gets the provider's error, not half an answer for a whole one", async () => {
    const fail = { code: "model_rejected", message: "The provider said no." };
    const client = await connected(await started([{ say: "Half", fail }]), { era });
    const failed = await client.callTool(run("go"));
    expect(failed.isError).toBe(true);
    expect(textIn(failed)).toBe("The provider said no.");
  });

  test.each([
    ["an unknown agent", run("hi", { agent: "unknown" }), "unknown"],
    ["a call without a message", { name: "run_agent", arguments: { agent: "assistant" } }, "message"],
    ["an unknown thread", { name: "get_run", arguments: { thread_id: "none" } }, "no thread `none`"],
  ])("lets its model read what was wrong: %s", async (_, call, words) => {
    const client = await connected(await started([]), { era });
    const refused = await client.callTool(call);
    expect(refused.isError).toBe(true);
    expect(textIn(refused)).toContain(words);
  });

  test("is refused by name what there is not", async () => {
    const client = await connected(await started([]), { era });
    await expect(client.callTool({ name: "delete_all" })).rejects.toThrow("no tool `delete_all`");
    const unknown = client.request({ method: "tools/remove", params: {} }, z.unknown());
    await expect(unknown).rejects.toThrow("no method `tools/remove`");
  });

  test("finds nothing of another user, and cancels nothing of theirs", async () => {
    const config = {
      auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] },
      backends: { allow_local: true },
    };
    const url = await started(ASKS, config);
    const headersOf = (user: string) => ({
      "x-skein-tenant": "acme",
      "x-skein-user": user,
      "x-skein-scopes": "read,run",
    });
    const ada = await connected(url, { era, headers: headersOf("ada") });
    const bob = await connected(url, { era, headers: headersOf("bob") });
    const { thread_id } = outcomeOf(await ada.callTool(run("ask me")));
    const calls = [
      { name: "get_run", arguments: { thread_id } },
      { name: "cancel_run", arguments: { thread_id } },
      { name: "answer", arguments: { thread_id, decision: "respond", message: "mine" } },
    ];
    for (const call of calls)
      expect(textIn(await bob.callTool(call))).toBe(`There is no thread \`${thread_id}\`.`);
    expect(await statusesOf(url, headersOf("ada"))).toEqual(["interrupted"]);
  });
});

/** Ends the answer of the first call of a tool after its first event, by a clean end or a broken connection. */
function cuttingFetch(how: "end" | "break") {
  let cuts = 0;
  const methods: string[] = [];
  const cutting: typeof fetch = async (input, init) => {
    methods.push(init?.method ?? "GET");
    const response = await fetch(input, init);
    const isCall = typeof init?.body === "string" && init.body.includes("tools/call");
    if (!isCall || cuts > 0 || !response.body) return response;
    cuts++;
    const reader = response.body.getReader();
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { value } = await reader.read();
        if (value) controller.enqueue(value);
        await reader.cancel();
        if (how === "end") controller.close();
        else controller.error(new Error("cut"));
      },
    });
    return new Response(body, response);
  };
  return { fetch: cutting, methods };
}

describe("an MCP session", () => {
  test.each(["end", "break"] as const)("comes back to a call whose connection is lost (%s)", async (how) => {
    const { tool, open, entered } = gate();
    const { url } = await startServer({
      script: gated,
      tools: [tool],
      agents: WITH_GATE,
      config: { wires: ["mcp"] },
    });
    const { fetch: cutting, methods } = cuttingFetch(how);
    const client = await connected(url, { fetch: cutting });
    const told: number[] = [];
    const call = client.callTool(run("hi"), { onprogress: ({ progress }) => told.push(progress) });
    await entered;
    await expect.poll(() => methods.filter((method) => method === "GET").length).toBe(2);
    open();
    expect(outcomeOf(await call)).toMatchObject({ status: "success", text: "Through." });
    expect(new Set(told).size).toBe(told.length);
    expect(await statusesOf(url)).toEqual(["success"]);
  });

  test("that is left does not end the run", async () => {
    const { tool, open, entered } = gate();
    const { url } = await startServer({
      script: gated,
      tools: [tool],
      agents: WITH_GATE,
      config: { wires: ["mcp"] },
    });
    const client = await connected(url);
    const call = client.callTool(run("hi", { thread_id: "mine" })).catch(() => {});
    await entered;
    await client.close();
    await call;
    open();
    await expect.poll(() => statusesOf(url)).toEqual(["success"]);
    const found = await (await connected(url)).callTool({
      name: "get_run",
      arguments: { thread_id: "mine" },
    });
    expect(outcomeOf(found).text).toBe("Through.");
  });

  test("cancels a call that waits for its person", async () => {
    const url = await started(EXECUTES);
    const cancel = new AbortController();
    const client = await connected(url, {
      ask: () => {
        cancel.abort();
        // The person has not answered yet.
        return new Promise<never>(() => {});
      },
    });
    await expect(client.callTool(run("run it"), { signal: cancel.signal })).rejects.toThrow();
    await expect.poll(() => statusesOf(url)).toContain("cancelled");
  });

  test("cancels no call of another user's session of the same name", async () => {
    const { tool, open, entered } = gate();
    const config = {
      wires: ["mcp"],
      auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] },
      backends: { allow_local: true },
    };
    const { url } = await startServer({ script: gated, tools: [tool], agents: WITH_GATE, config });
    const [ada, bob] = [personOf("ada"), personOf("bob")];
    const session = `plain-${"s".repeat(22)}`;
    const call = post(url, callOf(7, run("hi")), { ...ada, "mcp-session-id": session });
    await entered;
    const cancelled = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 7 } };
    const before = await post(url, cancelled, { ...bob, "mcp-session-id": session });
    expect(before.status).toBe(202);
    open();
    expect(await (await call).text()).toContain("Through.");
  });

  test("starts one run for a call that is sent twice", async () => {
    const url = await started([{ say: "Once." }]);
    const headers = { "mcp-session-id": `plain-${"s".repeat(22)}` };
    for (let times = 0; times < 2; times++)
      expect(await (await post(url, callOf(1, run("hi")), headers)).text()).toContain("Once.");
    expect(await statusesOf(url)).toEqual(["success"]);
  });
});

test("without a session, a client that leaves cancels the run", async () => {
  const url = await started(SLOW);
  const leave = new AbortController();
  const call = await fetch(`${url}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(callOf(1, run("go"))),
    signal: leave.signal,
  });
  expect(call.headers.get("content-type")).toContain("text/event-stream");
  leave.abort();
  await expect.poll(() => statusesOf(url)).toEqual(["cancelled"]);
});

const personOf = (user: string, scopes = "read,run") => ({
  "x-skein-tenant": "acme",
  "x-skein-user": user,
  "x-skein-scopes": scopes,
});
const callOf = (id: number, params: object) => ({ jsonrpc: "2.0", id, method: "tools/call", params });

function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

describe("over HTTP, MCP", () => {
  test.each([
    ["a batch", [callOf(1, {})], 400, -32600, "must be"],
    ["no JSON", "{", 400, -32700, "not valid JSON"],
    ["no JSON-RPC", { id: 1, method: "ping" }, 200, -32600, "jsonrpc"],
    ["an unknown method", { jsonrpc: "2.0", id: 1, method: "resources/list" }, 200, -32601, "no method"],
    ["a call without a tool", callOf(1, {}), 200, -32602, "name"],
    [
      "an unknown revision",
      callOf(1, { _meta: { "io.modelcontextprotocol/protocolVersion": "2099-01-01" } }),
      ...([200, -32022, "2026-07-28"] as const),
    ],
  ])("refuses %s", async (_, body, status, code, words) => {
    const url = await started([]);
    const refused = await post(url, body);
    const { error } = (await refused.json()) as { error: { code: number; message: string } };
    expect([refused.status, error.code]).toEqual([status, code]);
    expect(error.message).toContain(words);
  });

  test("refuses pages of other sites, other names of this machine, and has no stream between calls", async () => {
    const url = await started([]);
    const ping = { jsonrpc: "2.0", id: 1, method: "ping" };
    expect((await post(url, ping)).status).toBe(200);
    expect((await post(url, ping, { origin: "https://evil.example.com" })).status).toBe(403);
    const host = "evil.example.com";
    const rebound = await sendRaw(
      Number(new URL(url).port),
      Buffer.from(`POST /mcp HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`),
    );
    expect(rebound.status).toBe(403);
    expect((await fetch(`${url}/mcp`)).status).toBe(405);
    expect((await fetch(`${url}/mcp`, { method: "DELETE" })).status).toBe(204);
  });

  test("refuses what the credentials are not for, with 403", async () => {
    const config = {
      auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] },
      backends: { allow_local: true },
    };
    const url = await started([{ say: "ok" }], config);
    const reader = personOf("ada", "read");
    expect((await post(url, callOf(1, { name: "list_agents" }), reader)).status).toBe(200);
    expect((await post(url, callOf(1, run("hi")), reader)).status).toBe(403);
    expect((await post(url, callOf(1, run("hi")))).status).toBe(401);
  });

  test("gives no other user the stream of a call", async () => {
    const config = {
      auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] },
      backends: { allow_local: true },
    };
    const url = await started([{ say: "Secret." }], config);
    const session = { "mcp-session-id": `plain-${"s".repeat(22)}`, "mcp-protocol-version": "2025-11-25" };
    const text = await (await post(url, callOf(1, run("hi")), { ...personOf("ada"), ...session })).text();
    const id = /^id: (.*)$/m.exec(text)?.[1] ?? "";
    const comeBack = (user: string, cursor: string) =>
      fetch(`${url}/mcp`, { headers: { ...personOf(user), ...session, "last-event-id": cursor } });
    expect(await (await comeBack("ada", id)).text()).toContain("Secret.");
    expect((await comeBack("bob", id)).status).toBe(404);
    expect((await comeBack("bob", "odd")).status).toBe(400);
  });

  test("is off unless the operator turns it on", async () => {
    const { url } = await startServer();
    expect((await post(url, { jsonrpc: "2.0", id: 1, method: "ping" })).status).toBe(404);
  });
});
