// Requests that come twice: a client that has lost the answer sends the same one again.

import { describe, expect, onTestFinished, test } from "vitest";
import { startServer } from "../support/server.ts";
import { AGENTS } from "./agents.ts";

const SCRIPT = [
  {
    say: "May I?",
    call: [{ tool: "execute", args: { command: "echo once >> log.txt && cat log.txt" }, id: "call_1" }],
  },
  { say: "Done." },
];

const serve = (config: object = {}, script: object[] = SCRIPT) =>
  startServer({
    script,
    agents: AGENTS,
    config: { wires: ["ai-sdk", "ag-ui", "langgraph", "openai", "a2a", "mcp"], ...config },
  });

interface Posted {
  readonly status: number;
  readonly text: string;
}

async function post(address: string, body: object, headers: Record<string, string> = {}): Promise<Posted> {
  const response = await fetch(address, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(100_000),
  });
  return { status: response.status, text: await response.text() };
}

const user = (text: string, id = "u1") => ({ id, role: "user", parts: [{ type: "text", text }] });
const aguiInput = (more: object) => ({
  ...{
    threadId: "t",
    runId: "r",
    protocolVersion: "1.0",
    messages: [{ id: "u1", role: "user", content: "go" }],
  },
  ...more,
});
const langgraphRun = (more: object) => ({ assistant_id: "assistant", if_not_exists: "create", ...more });
const a2aMessage = (more: object) => ({
  ...{ jsonrpc: "2.0", id: 1, method: "SendMessage" },
  params: { message: { role: "ROLE_USER", contextId: "t", ...more } },
});
const mcpCall = (name: string, args: object) => ({
  ...{ jsonrpc: "2.0", id: 1, method: "tools/call" },
  params: { name, arguments: args },
});

interface Wire {
  /** Sends what makes the agent ask. */
  ask(url: string): Promise<Posted>;
  answer(url: string, asked: Posted): Promise<Posted>;
}

const KEY = { "idempotency-key": "key-1" };
const WIRES: Readonly<Record<string, Wire>> = {
  "the AI SDK": {
    ask: (url) => post(`${url}/ai-sdk/assistant/chat`, { id: "t", messages: [user("go")] }),
    async answer(url) {
      const approval = { id: "approval_call_1", approved: true };
      const part = { type: "dynamic-tool", toolCallId: "call_1", state: "approval-responded", approval };
      const message = { id: "a_u1", role: "assistant", parts: [part] };
      return post(`${url}/ai-sdk/assistant/chat`, { id: "t", message }, KEY);
    },
  },
  "AG-UI": {
    ask: (url) => post(`${url}/ag-ui/agent/assistant/run`, aguiInput({})),
    answer: (url) =>
      post(
        `${url}/ag-ui/agent/assistant/run`,
        aguiInput({ resume: [{ interruptId: "approval_call_1", status: "resolved", payload: true }] }),
        KEY,
      ),
  },
  LangGraph: {
    ask: (url) =>
      post(
        `${url}/langgraph/threads/t/runs/stream`,
        langgraphRun({ input: { messages: [{ type: "human", content: "go" }] } }),
      ),
    answer: (url) =>
      post(`${url}/langgraph/threads/t/runs/stream`, langgraphRun({ command: { resume: "yes" } }), KEY),
  },
  "OpenAI's responses": {
    ask: (url) => post(`${url}/v1/responses`, { model: "assistant", input: "go" }),
    answer(url, asked) {
      const { id } = JSON.parse(asked.text) as { id: string };
      const input = [{ type: "mcp_approval_response", approval_request_id: "mcpr_call_1", approve: true }];
      return post(`${url}/v1/responses`, { model: "assistant", previous_response_id: id, input }, KEY);
    },
  },
  // The id of the message is the key.
  A2A: {
    ask: (url) =>
      post(`${url}/a2a/assistant`, a2aMessage({ messageId: "m1", parts: [{ text: "go" }] }), {
        "a2a-version": "1.0",
      }),
    answer(url, asked) {
      const { result } = JSON.parse(asked.text) as { result: { task: { id: string } } };
      const message = a2aMessage({ messageId: "m2", taskId: result.task.id, parts: [{ text: "yes" }] });
      return post(`${url}/a2a/assistant`, message, { "a2a-version": "1.0" });
    },
  },
  MCP: {
    ask: (url) =>
      post(`${url}/mcp`, mcpCall("run_agent", { agent: "assistant", message: "go", thread_id: "t" })),
    answer: (url) => post(`${url}/mcp`, mcpCall("answer", { thread_id: "t", decision: "approve" }), KEY),
  },
};

describe.each(Object.entries(WIRES))("an answer over %s", (_, { ask, answer }) => {
  test("that is sent twice with its key is given once, and returns the same run twice", async () => {
    const { url } = await serve();
    const asked = await ask(url);
    const first = await answer(url, asked);
    expect(first).toMatchObject({ status: 200, text: expect.stringContaining("Done.") });
    expect(await answer(url, asked)).toEqual(first);
  });
});

test("a message that is sent again after its question was answered receives the whole turn", async () => {
  const { ask, answer } = WIRES["the AI SDK"] as Wire;
  const { url } = await serve();
  await answer(url, await ask(url));
  const again = await ask(url);
  expect(again.text).toContain('"delta":"May"');
  expect(again.text).toContain("Done.");
});

test("a client that follows its turn again and leaves cancels the turn's active run", async () => {
  const { url } = await serve({}, [SCRIPT[0] as object, { say: "one two", delay_ms: 60_000 }]);
  const { ask, answer } = WIRES["the AI SDK"] as Wire;
  const asked = await ask(url);
  const following = answer(url, asked).catch(() => {});
  const newest = async () => {
    const listed = await (await fetch(`${url}/threads/t/runs`)).json();
    return (listed as { items: { status: string; resumes?: string }[] }).items[0];
  };
  await expect.poll(newest).toMatchObject({ status: "running", resumes: expect.any(String) });
  const left = new AbortController();
  const again = await fetch(`${url}/ai-sdk/assistant/chat?on_disconnect=cancel`, {
    ...{ method: "POST", body: JSON.stringify({ id: "t", messages: [user("go")] }), signal: left.signal },
    headers: { "content-type": "application/json" },
  });
  const reader = again.body?.getReader();
  for (let seen = ""; !seen.includes("start-step"); )
    seen += Buffer.from((await reader?.read())?.value ?? []);
  left.abort();
  await expect.poll(newest).toMatchObject({ status: "cancelled" });
  await following;
});

test("a word that is sent twice approves one call, and not the next one", async () => {
  const execute = (id: string) => ({ call: [{ tool: "execute", args: { command: `echo ${id}` }, id }] });
  const { url } = await serve({}, [execute("call_1"), execute("call_2"), { say: "Done." }]);
  const send = (text: string, id: string) =>
    post(`${url}/ai-sdk/assistant/chat?v=5`, { id: "t", message: user(text, id) });
  await send("go", "u1");
  const first = await send("yes", "u2");
  expect(first.text).toContain("call_2");
  expect(await send("yes", "u2")).toEqual(first);
  const [again, other] = await Promise.all([send("yes", "u3"), send("yes", "u3")]);
  expect(again.text).toContain("Done.");
  expect(other).toEqual(again);
});

test("an approval word that is edited later is a message", async () => {
  const { url } = await serve({}, [...SCRIPT, { say: "Looked." }]);
  const send = (text: string, id: string) =>
    post(`${url}/ai-sdk/assistant/chat?v=5`, { id: "t", message: user(text, id) });
  await send("go", "u1");
  expect((await send("yes", "u2")).text).toContain("Done.");
  expect((await send("Look again.", "u2")).text).toContain("Looked.");
});

test("a repeated message counts as one more stream, and is refused above the limit", async () => {
  const { url } = await serve({ quotas: { user: { streams: 1 } } }, [{ say: "one two", delay_ms: 60_000 }]);
  const body = { id: "t", messages: [user("go")] };
  const left = new AbortController();
  onTestFinished(() => left.abort());
  const first = await fetch(`${url}/ai-sdk/assistant/chat`, {
    ...{ method: "POST", body: JSON.stringify(body), signal: left.signal },
    headers: { "content-type": "application/json" },
  });
  const reader = first.body?.getReader();
  for (let seen = ""; !seen.includes("start-step"); )
    seen += Buffer.from((await reader?.read())?.value ?? []);
  expect(await post(`${url}/ai-sdk/assistant/chat`, body)).toMatchObject({ status: 429 });
  expect(await post(`${url}/ag-ui/agent/assistant/run`, aguiInput({}))).toMatchObject({ status: 429 });
});

test("a message that was written into a thread is answered when it is sent", async () => {
  const { url } = await serve({}, [{ say: "Hello." }]);
  await post(`${url}/langgraph/threads`, { thread_id: "t" });
  const messages = [{ type: "human", id: "u1", content: "Hi" }];
  expect(await post(`${url}/langgraph/threads/t/state`, { values: { messages } })).toMatchObject({
    status: 200,
  });
  const sent = await post(`${url}/langgraph/threads/t/runs/stream`, langgraphRun({ input: { messages } }));
  expect(sent.text).toContain("Hello.");
  const again = await post(`${url}/ai-sdk/assistant/chat`, { id: "t", messages: [user("Hi")] });
  expect(again.text).toContain("Hello.");
  const kept = await (await fetch(`${url}/threads/t/messages`)).json();
  expect((kept as { items: { role: string }[] }).items.map(({ role }) => role)).toEqual([
    "user",
    "assistant",
  ]);
});
