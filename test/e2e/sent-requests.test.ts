// What the model was sent in each call of a run, where the operator has it kept.

import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/agent/core/tool.ts";
import type { SentRequest } from "../../src/engine/runs/sent-requests.ts";
import type { TraceSpan } from "../../src/engine/runs/trace.ts";
import { serveWith } from "../support/process.ts";
import { type ServerOptions, startServer, temporaryFolder } from "../support/server.ts";
import { post, reconnect } from "../support/sse.ts";

const KEPT = { traces: { requests: true } };

async function ran(options: ServerOptions) {
  const { url } = await startServer(options);
  const viewer = await post(`${url}/threads/t/runs`, { input: "go", max_tokens: 500 });
  await viewer.ended();
  const run = `${url}${viewer.headers.get("location")?.replace(/\/events$/, "")}`;
  const read = async (path: string) => {
    const response = await fetch(`${run}${path}`);
    return { status: response.status, json: await response.json() };
  };
  const sent = async (n: number | string) => (await read(`/requests/${n}`)).json as SentRequest;
  return { url, run, read, sent };
}

const lookUp = defineTool({
  ...{ name: "look_up", description: "Looks it up.", parameters: z.object({}) },
  execute: () => "found ".repeat(200),
});
const CALL = { call: [{ tool: "look_up" }] };

const agents = (more: string) => `
agents:
  assistant:
    model: { provider: openai, model: test, base_url: "http://secret.internal/v1", api_key: sk-hidden }
    system_prompt: Be kind.
    tools: [look_up]
    ${more}
`;

test("each call has its prompt, tools, settings and messages, under its number in the trace", async () => {
  const script = [CALL, { say: "Two." }];
  const { sent, read, url } = await ran({ config: KEPT, script, tools: [lookUp], agents: agents("") });
  const { spans } = (await read("/trace")).json as { spans: TraceSpan[] };
  const calls = spans.filter(({ name }) => name === "llm.call");
  expect(calls.map(({ number }) => number)).toEqual([1, 2]);
  const { items } = (await (await fetch(`${url}/threads/t/messages`)).json()) as { items: { id: string }[] };
  const [asked, called, result, said] = items.map(({ id }) => id);

  const first = await sent(1);
  expect(first).toMatchObject({
    number: 1,
    message_id: called,
    settings: { max_tokens: 500 },
    is_whole: true,
  });
  expect(first.system.find(({ id }) => id === "instructions")).toMatchObject({ text: "Be kind." });
  expect(first.tools.find(({ name }) => name === "look_up")).toMatchObject({
    ...{ description: "Looks it up.", parameters: { type: "object" } },
  });
  expect(first.messages).toEqual([{ id: asked, role: "user", in_thread: true }]);

  const second = await sent(2);
  expect(second).toMatchObject({ number: 2, message_id: said });
  expect(second.messages.map(({ id, in_thread }) => [id, in_thread])).toEqual([
    [asked, true],
    [called, true],
    [result, true],
  ]);
  expect(JSON.stringify([first, second])).not.toMatch(/sk-hidden|secret\.internal/);
});

test("a message that a hook changed is recorded as the model received it", async () => {
  const hooks = "hooks: { trimming: { keep: 1, max_chars: 5, step: 1 } }";
  const script = [CALL, CALL, { say: "Done." }];
  const { sent } = await ran({ config: KEPT, script, tools: [lookUp], agents: agents(hooks) });
  const results = (await sent(3)).messages.filter(({ role }) => role === "tool");
  expect(results.map(({ in_thread }) => in_thread)).toEqual([false, true]);
  expect(results[0]?.message).toMatchObject({ content: expect.stringMatching(/^found\n\[… \d+ characters/) });
  expect(results[1]).not.toHaveProperty("message");
});

test("a request is deleted with its thread, and a missing one is not found", async () => {
  const { url, read } = await ran({ config: KEPT, script: [{ say: "ok" }] });
  expect((await read("/requests/1")).status).toBe(200);
  for (const n of ["2", "999999"])
    expect(await read(`/requests/${n}`)).toMatchObject({ status: 404, json: { code: "not_found" } });
  for (const n of ["0", "x", "-1", "1.5"]) expect((await read(`/requests/${n}`)).status).toBe(400);
  await fetch(`${url}/threads/t`, { method: "DELETE" });
  expect(await read("/requests/1")).toMatchObject({ status: 404, json: { code: "not_found" } });
});

test("a run that another process continues after a crash continues to count its model calls", async () => {
  const dir = await temporaryFolder();
  const first = await serveWith(KEPT, { dir, script: `- { say: ${"word ".repeat(600)}, delay_ms: 200 }` });
  const viewer = await post(`${first.url}/threads/t/runs`, { input: "go" });
  await viewer.until(({ event }) => event === "on_chat_model_stream");
  first.child.kill("SIGKILL");
  await viewer.ended().catch(() => {});
  await first.exited;

  const second = await serveWith(KEPT, { dir, script: "- { say: one two three }" });
  await reconnect(viewer, second.url);
  const run = `${second.url}${viewer.headers.get("location")?.replace(/\/events$/, "")}`;
  const { spans } = (await (await fetch(`${run}/trace`)).json()) as { spans: TraceSpan[] };
  expect(spans.flatMap(({ number }) => number ?? [])).toEqual([1, 2]);
  const read = async (n: number) => (await (await fetch(`${run}/requests/${n}`)).json()) as SentRequest;
  const [one, two] = [await read(1), await read(2)];
  expect([one.number, two.number]).toEqual([1, 2]);
  expect(one.message_id).not.toBe(two.message_id);
  expect(two.messages).toEqual(one.messages);
});

test("nothing is recorded unless the operator says so, and the error names the setting", async () => {
  const { read } = await ran({ script: [{ say: "ok" }] });
  expect(await read("/requests/1")).toMatchObject({
    status: 404,
    json: { code: "not_recorded", details: { setting: "traces.requests" } },
  });
});
