// Traces as a collector of OpenTelemetry gets them.

import { createServer } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { openSqliteKeyFile } from "../../src/engine/stores/sqlite/key-file.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import { createApiKeys, issueApiKey } from "../../src/server/auth/api-keys.ts";
import { answer, overHttp } from "../agent/tools/mcp/over-http.ts";
import { type Collector, type ReceivedSpan, startCollector } from "../support/collector.ts";
import { say } from "../support/fake-provider/script.ts";
import { startFakeProvider } from "../support/fake-provider/server.ts";
import { freePort } from "../support/free-port.ts";
import type { ServerOptions } from "../support/server.ts";
import { post } from "../support/sse.ts";
import { cast, completing, delegating, TEAM } from "../support/team.ts";
import { traced } from "../support/traced-server.ts";

const PROMPT = "my password is swordfish";
const PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const [, TRACE, SPAN] = PARENT.split("-");

interface Traced extends ServerOptions {
  readonly headers?: Record<string, string>;
  readonly variables?: Record<string, string>;
}

/** The spans of one run, all of them. */
async function spansOf({ headers = {}, variables = {}, ...options }: Traced = {}) {
  const collector = await startCollector();
  const { url, app } = await traced(collector.url, options, variables);
  await (await post(`${url}/threads/t1/runs`, { input: PROMPT }, headers)).ended();
  await app.close();
  return { ...collector, named: named(collector) };
}

const named = ({ spans, faults }: Collector) => {
  expect(faults).toEqual([]);
  expect(JSON.stringify(spans)).not.toContain(PROMPT);
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  return (name: string): ReceivedSpan => {
    const found = spans.filter((span) => span.name === name);
    expect(found, `${name} in ${spans.map((span) => span.name)}`).toHaveLength(1);
    return found[0] ?? expect.fail();
  };
};

test("a run is a trace of the agent, its model calls and its tools, named by the conventions", async () => {
  const script = [
    { call: [{ tool: "write_todos", args: { todos: [] } }, { tool: "no_such_tool" }] },
    { say: "Done." },
  ];
  const { spans, named } = await spansOf({ script });
  expect(spans.map(({ name }) => name).sort()).toEqual([
    "chat test",
    "chat test",
    "execute_tool no_such_tool",
    "execute_tool write_todos",
    "invoke_agent assistant",
  ]);
  const agent = named("invoke_agent assistant");
  expect(agent).toMatchObject({ kind: 1, status: { code: 0 }, events: ["skein.run.started"] });
  expect(agent.parentSpanId).toBeUndefined();
  expect(agent.attributes).toMatchObject({
    ...{ "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "assistant" },
    ...{ "gen_ai.conversation.id": "t1", "skein.run.status": "success", "skein.run.stop_reason": "end_turn" },
    "gen_ai.usage.output_tokens": expect.any(Number),
  });
  expect(agent.resource).toMatchObject({ "service.name": "skein", "service.version": expect.any(String) });
  for (const { traceId, spanId, parentSpanId } of spans)
    if (spanId !== agent.spanId) expect([traceId, parentSpanId]).toEqual([agent.traceId, agent.spanId]);
  const [chat] = spans.filter(({ name }) => name === "chat test");
  expect(chat).toMatchObject({ kind: 3, status: { code: 0 } });
  expect(chat?.attributes).toMatchObject({
    ...{
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "scripted",
      "gen_ai.request.model": "test",
    },
    ...{ "gen_ai.response.finish_reasons": ["tool_use"], "gen_ai.usage.input_tokens": expect.any(Number) },
  });
  expect(named("execute_tool write_todos").attributes).toMatchObject({
    ...{ "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "write_todos" },
    "gen_ai.tool.call.id": expect.any(String),
  });
  expect(named("execute_tool no_such_tool")).toMatchObject({
    status: { code: 2 },
    attributes: { "error.type": "tool_error" },
  });
});

test("a subagent's run is inside the call that started it", async () => {
  const script = cast({
    lead: [delegating({ agent: "coder", task: "Write it" }), { say: "Done." }],
    coder: [completing("It is written.")],
  });
  const { named } = await spansOf({ agents: TEAM, script });
  const [lead, call, coder] = ["invoke_agent lead", "execute_tool delegate", "invoke_agent coder"].map(named);
  expect([call?.parentSpanId, coder?.parentSpanId]).toEqual([lead?.spanId, call?.spanId]);
  expect(new Set([lead, call, coder].map((span) => span?.traceId)).size).toBe(1);
});

test("a model call is one span with its retries, and contains the error", async () => {
  const provider = await startFakeProvider();
  onTestFinished(() => provider.close());
  const agents = `
agents:
  assistant:
    model: { provider: openai, model: gpt-5-mini, base_url: "${provider.url}/v1", api_key: k }
    hooks: { retry: { attempts: 2, base_ms: 1 } }
`;
  provider.enqueue({ fail: "overloaded" }, { blocks: [say("Here.")] });
  const { named } = await spansOf({ agents, realModels: true });
  expect(named("chat gpt-5-mini")).toMatchObject({
    ...{ status: { code: 0 }, events: ["gen_ai.retry"] },
    attributes: { "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5-mini" },
  });
  provider.enqueue({ fail: "overloaded" }, { fail: "overloaded" });
  const failed = await spansOf({ agents, realModels: true });
  const failure = {
    status: { code: 2, message: "model_overloaded" },
    attributes: { "error.type": "model_overloaded" },
  };
  expect(failed.named("chat gpt-5-mini")).toMatchObject({ ...failure, events: ["gen_ai.retry"] });
  expect(failed.named("invoke_agent assistant")).toMatchObject(failure);
});

test("a run that a limit ends is a span with the limit as its error", async () => {
  const { named } = await spansOf({
    agents: `agents: { assistant: { model: "scripted:test", max_iterations: 1 } }`,
    script: () => ({ call: [{ tool: "ls" }] }),
  });
  expect(named("invoke_agent assistant")).toMatchObject({
    status: { code: 2, message: "max_iterations" },
    attributes: { "error.type": "max_iterations" },
  });
});

test("a model call that is cancelled before its retry is a span with its error", async () => {
  const collector = await startCollector();
  const script = [{ fail: { code: "model_overloaded", retry_after_ms: 50_000 } }];
  const { url, app } = await traced(collector.url, { script });
  const viewer = await post(`${url}/threads/t1/runs`, { input: PROMPT });
  const { event } = await viewer.until(({ event }) => event === "warning");
  const { run_id } = event as Extract<StreamEvent, { event: "warning" }>;
  await fetch(`${url}/threads/t1/runs/${run_id}/cancel`, { method: "POST" });
  await viewer.ended();
  await app.close();
  expect(named(collector)("chat test")).toMatchObject({
    ...{ status: { code: 2, message: "model_overloaded" }, events: ["gen_ai.retry"] },
    attributes: { "error.type": "model_overloaded" },
  });
});

test("a caller with the scope `admin` can set the trace; another caller's is only a link", async () => {
  const inside = (await spansOf({ headers: { traceparent: PARENT } })).named("invoke_agent assistant");
  expect([inside.traceId, inside.parentSpanId, inside.links]).toEqual([TRACE, SPAN, []]);

  const collector = await startCollector();
  const { url, app, dir } = await traced(collector.url, { config: { auth: { scheme: "api_key" } } });
  const { documents, close } = openSqliteKeyFile(join(dir, "data"));
  const owner = { tenant: "acme", user: "ada", name: "", scopes: ["run" as const, "read" as const] };
  const { key } = await issueApiKey(createApiKeys(documents), owner);
  close();
  const headers = { traceparent: PARENT, authorization: `Bearer ${key}` };
  await (await post(`${url}/threads/t1/runs`, { input: PROMPT }, headers)).ended();
  await app.close();
  const apart = named(collector)("invoke_agent assistant");
  expect(apart.traceId).not.toBe(TRACE);
  expect(apart.parentSpanId).toBeUndefined();
  expect(apart.links).toMatchObject([{ traceId: TRACE, spanId: SPAN }]);
});

test("OpenTelemetry's variables apply: headers, names, sampling", async () => {
  const variables = {
    OTEL_EXPORTER_OTLP_HEADERS: "x-key=secret",
    OTEL_SERVICE_NAME: "agents",
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment=test",
  };
  const { headers, spans } = await spansOf({ variables });
  expect(headers[0]).toMatchObject({ "x-key": "secret", "content-type": "application/json" });
  expect(spans[0]?.resource).toMatchObject({ "service.name": "agents", "deployment.environment": "test" });
  for (const sampler of [{ OTEL_TRACES_SAMPLER: "always_off" }, { OTEL_SDK_DISABLED: "true" }])
    expect((await spansOf({ variables: sampler as never })).spans).toEqual([]);
  const unsampled = PARENT.replace(/01$/, "00");
  expect((await spansOf({ headers: { traceparent: unsampled } })).spans).toEqual([]);
});

test("an unavailable collector costs a run nothing except the count of its spans", async () => {
  const away = `http://127.0.0.1:${await freePort()}`;
  const { url } = await traced(
    away,
    {},
    { OTEL_EXPORTER_OTLP_TIMEOUT: "500", OTEL_BSP_SCHEDULE_DELAY: "10" },
  );
  const events = await (await post(`${url}/threads/t1/runs`, { input: "Hello" })).ended();
  expect(events.at(-1)).toMatchObject({ data: { status: "success" } });
  const page = async () => (await fetch(`${url}/metrics`)).text();
  await expect.poll(page).toContain('skein_trace_spans_total{outcome="failed"} 2');
});

test("the log contains a run's trace id", async () => {
  const lines: Record<string, unknown>[] = [];
  const logger = pino({ level: "info" }, { write: (line: string) => lines.push(JSON.parse(line)) });
  await spansOf({ logger, headers: { traceparent: PARENT } });
  expect(lines.find(({ msg }) => msg === "run ended")).toMatchObject({ trace_id: TRACE });
});

test("an MCP server receives the trace of its call, in the header and in the call", async () => {
  const seen: unknown[] = [];
  const server = await overHttp({
    look({ id, meta, request, response }) {
      seen.push(request.headers.traceparent, meta?.traceparent);
      answer(response, id, { content: [{ type: "text", text: "It is." }] });
    },
  });
  const collector = await startCollector();
  const { url, app } = await traced(collector.url, {
    agents: `
agents: { assistant: { model: "scripted:test", tools: ["mcp__far__*"] } }
mcp_servers: { far: { url: "${server.url}" } }`,
    script: [{ call: [{ tool: "mcp__far__look" }] }, { say: "ok" }],
  });
  const agent = async () => (await fetch(`${url}/agents/assistant`)).json();
  await expect.poll(agent).toMatchObject({ tools: expect.arrayContaining(["mcp__far__look"]) });
  await (await post(`${url}/threads/t1/runs`, { input: "go" })).ended();
  await app.close();
  const call = named(collector)("tools/call mcp__far__look");
  expect(call).toMatchObject({ kind: 3, attributes: { "mcp.method.name": "tools/call" } });
  const traceparent = `00-${call.traceId}-${call.spanId}-01`;
  expect(seen).toEqual([traceparent, traceparent]);
});

test("a gateway of yours receives the trace of a model call with its retries, unless the operator turns it off", async () => {
  const gateway = await startFakeProvider();
  onTestFinished(() => gateway.close());
  const asking = (more: string) => `
agents:
  assistant:
    model: { provider: anthropic, model: claude-sonnet-4-5, base_url: "${gateway.url}", api_key: k${more} }
    hooks: { retry: { attempts: 2, base_ms: 1 } }
`;
  const sent = () => gateway.requests().map(({ headers }) => headers.traceparent);
  gateway.enqueue({ fail: "overloaded" }, { blocks: [say("Here.")] });
  const { named } = await spansOf({ agents: asking(""), realModels: true, headers: { traceparent: PARENT } });
  const { spanId } = named("chat claude-sonnet-4-5");
  expect(sent()).toEqual([`00-${TRACE}-${spanId}-01`, `00-${TRACE}-${spanId}-01`]);
  await spansOf({ agents: asking(", traceparent: false"), realModels: true });
  expect(sent().slice(2)).toEqual([undefined]);
});

test("a callback tool receives the trace of its call", async () => {
  const seen: (string | undefined)[] = [];
  const outside = createServer(async (request, reply) => {
    await text(request);
    seen.push(request.headers.traceparent as string | undefined);
    reply.writeHead(200, { "content-type": "application/json" }).end('{"output": "It is."}');
  });
  const port = await freePort();
  await new Promise<void>((resolve) => outside.listen(port, "127.0.0.1", resolve));
  onTestFinished(() => void outside.close().closeAllConnections());
  const collector = await startCollector();
  const { url, app } = await traced(collector.url, {
    agents: `agents: { assistant: { model: "scripted:test", tools: ["look_*"] } }`,
    script: [{ call: [{ tool: "look_up" }] }, { say: "ok" }],
    config: { http_tools: { allow: `127.0.0.1:${port}` } },
  });
  const tool = {
    name: "look_up",
    description: "x",
    parameters: { type: "object" },
    callback_url: `http://127.0.0.1:${port}/`,
  };
  const headers = { "content-type": "application/json" };
  await fetch(`${url}/tools`, { method: "POST", headers, body: JSON.stringify(tool) });
  await (await post(`${url}/threads/t1/runs`, { input: "go" }, { traceparent: PARENT })).ended();
  await app.close();
  const call = named(collector)("execute_tool look_up");
  expect(seen).toEqual([`00-${TRACE}-${call.spanId}-01`]);
});
