// A child that waits for a result from outside, and what may happen to it meanwhile.

import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { textOf } from "../../src/agent/core/message.ts";
import { defineTool, interrupted } from "../../src/agent/core/tool.ts";
import type { Turn } from "../../src/agent/models/scripted.ts";
import { dataOf } from "../support/drain.ts";
import { freePort } from "../support/free-port.ts";
import { statusesOf } from "../support/native.ts";
import { startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";
import { cast, delegating, own, results, TEAM, wellFormed } from "../support/team.ts";

/** A family whose child waits for what never comes. */
async function waiting(lead: readonly Turn[] = [delegating({ agent: "coder", task: "Ask them" })]) {
  const later = defineTool({
    name: "later",
    description: "",
    parameters: z.object({}),
    execute: async () => interrupted(),
  });
  const { url } = await startServer({
    tools: [later],
    agents: TEAM.replace(
      "description: Writes",
      "tools: [later], permissions: { mode: bypass }, description: Writes",
    ),
    script: cast({
      lead: [...lead, { say: "ok" }],
      coder: [{ call: [{ tool: "later" }] }],
    }),
  });
  const viewer = await post(`${url}/threads/t1/runs`, { input: "go" });
  const { event } = await viewer.until(({ event }) => event === "on_subagent_start");
  await viewer.until(({ event }) => event === "on_subagent_end");
  const thread = event.event === "on_subagent_start" ? event.data.thread_id : "";
  return { url, viewer, thread };
}

describe("a parent whose child waits for an external result", () => {
  test.each([
    ["deleted", (url: string) => url],
    ["cleared", (url: string) => `${url}/messages`],
  ])("continues if the child's thread is %s", async (how, pathOf) => {
    const { url, viewer, thread } = await waiting();
    await fetch(pathOf(`${url}/threads/${thread}`), { method: "DELETE" });
    expect(results(await wellFormed(viewer))).toEqual([
      `[coder-ask-1] agent coder: failed\nIts thread was ${how}.`,
    ]);
  });

  test("is stopped after its step together with the child, without a failure", async () => {
    const { url, viewer } = await waiting();
    const headers = { "content-type": "application/json" };
    const location = viewer.headers.get("location")?.replace(/\/events$/, "");
    const body = JSON.stringify({ mode: "interrupt" });
    await fetch(`${url}${location}/cancel`, { method: "POST", headers, body });
    const events = await wellFormed(viewer);
    expect(results(events)).toEqual([
      "[coder-ask-1] agent coder: cancelled\nStopped before it had finished.",
    ]);
    expect(dataOf(own(events), "done")).toMatchObject([{ status: "interrupted", stop_reason: "interrupt" }]);
  });
});

test("a background task that waits for an external result continues if the run that awaits it is cancelled", async () => {
  const task = { agent: "coder", task: "Ask them", context: "" };
  const { url, viewer, thread } = await waiting([
    { call: [{ tool: "start_task", args: task }] },
    { call: [{ tool: "wait_tasks" }] },
  ]);
  const location = viewer.headers.get("location")?.replace(/\/events$/, "");
  await fetch(`${url}${location}/cancel`, { method: "POST" });
  const events = await wellFormed(viewer);
  expect(dataOf(own(events), "done")).toMatchObject([{ status: "cancelled" }]);
  expect(await statusesOf(url, thread)).toEqual(["interrupted"]);
  expect(await (await fetch(`${url}/threads/${thread}`)).json()).toMatchObject({ status: "interrupted" });
});

test("a child with a deferred tool result is waited for, and continues with the result", async () => {
  const called = Promise.withResolvers<string>();
  const outside = createServer(async (request, response) => {
    const body = await text(request);
    response.writeHead(202).end();
    called.resolve(z.object({ result_url: z.url() }).parse(JSON.parse(body)).result_url);
  });
  const [port, outsidePort] = [await freePort(), await listen(outside)];
  const allow = `127.0.0.1:${outsidePort}`;
  const { url } = await startServer({
    agents: TEAM.replace(
      "description: Writes",
      "tools: [ask_carrier], permissions: { mode: bypass }, description: Writes",
    ),
    config: { listen: { port }, public_url: `http://127.0.0.1:${port}`, http_tools: { allow } },
    script: cast({
      lead: [delegating({ agent: "coder", task: "Ask them" }), { say: "ok" }],
      coder: (request, turn) =>
        turn === 0
          ? { call: [{ tool: "ask_carrier" }] }
          : { say: textOf(request.messages.at(-1)?.content ?? "") },
    }),
  });
  const tool = { name: "ask_carrier", description: "Asks.", parameters: { type: "object", properties: {} } };
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ ...tool, callback_url: `http://${allow}/` });
  expect((await fetch(`${url}/tools`, { method: "POST", headers, body })).status).toBe(201);
  const viewer = await post(`${url}/threads/t1/runs`, { input: "go" });
  const resultUrl = await called.promise;
  await viewer.until(({ event, data }) => event === "on_subagent_end" && data.status === "interrupted");
  await fetch(resultUrl, { method: "POST", headers, body: JSON.stringify({ result: "They have one." }) });
  expect(results(await wellFormed(viewer))).toEqual(["[coder-ask-1] agent coder: completed\nThey have one."]);
});

/** The port, until the test has finished. */
async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  onTestFinished(() => void server.close().closeAllConnections());
  return typeof address === "object" && address ? address.port : 0;
}
