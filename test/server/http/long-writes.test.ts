import { ServerResponse } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { startServer } from "../../support/server.ts";

const KIB = 1024;
const CHARS = 500 * KIB;
const COUNT = 10;
/** What is written in one tick of the event loop: a message, which is not parted, and a part of the next one. */
const A_TURN = 3 * CHARS;

/** The most bytes that servers of this process write in one tick of the event loop while `work` is done. */
async function mostInOneTurn(work: () => Promise<unknown>): Promise<number> {
  let [most, now, isOver] = [0, 0, false];
  for (const name of ["write", "end"] as const) {
    const original = ServerResponse.prototype[name] as (...args: unknown[]) => never;
    const spy = vi.spyOn(ServerResponse.prototype, name).mockImplementation(function (
      this: ServerResponse,
      ...args: unknown[]
    ) {
      const [chunk] = args;
      if (typeof chunk === "string" || Buffer.isBuffer(chunk)) now += Buffer.byteLength(chunk);
      return original.apply(this, args);
    });
    onTestFinished(() => spy.mockRestore());
  }
  const turns = (async () => {
    while (!isOver) {
      await nextTurn();
      most = Math.max(most, now);
      now = 0;
    }
  })();
  await work();
  isOver = true;
  await turns;
  return most;
}

/** A server, and what sends it JSON and reads the answer to its end. */
async function served() {
  const { url } = await startServer({
    script: () => ({ say: "ok" }),
    config: { limits: { body_bytes: 64 * KIB * KIB }, wires: ["langgraph", "ag-ui", "a2a"] },
  });
  return async (path: string, body: object, accept = "*/*") => {
    const headers = { "content-type": "application/json", accept, "a2a-version": "1.0" };
    const reply = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: reply.status, text: await reply.text() };
  };
}

type Send = Awaited<ReturnType<typeof served>>;

const long = (index: number) => `${index} ${"é".repeat(CHARS)}`;
const texts = Array.from({ length: COUNT }, (_, index) => long(index));
const many = { messages: texts.map((content) => ({ role: "user", content })) };
const rpc = (method: string, params: object) => ({ jsonrpc: "2.0", id: 1, method, params });

async function fatThread(send: Send): Promise<void> {
  await send("/threads/fat/runs", many, "application/json");
}

async function fatThreads(send: Send): Promise<void> {
  for (const [index, input] of texts.entries())
    await send(`/threads/t${index}/runs`, { input }, "application/json");
}

async function fatTasks(send: Send): Promise<void> {
  for (const [index, text] of texts.entries()) {
    const message = { messageId: `m${index}`, contextId: "context", role: "ROLE_USER", parts: [{ text }] };
    await send("/a2a/assistant", rpc("SendMessage", { message }));
  }
}

const input = { threadId: "fat", runId: "r", state: {}, messages: [], tools: [], context: [] };

const graphRun = { assistant_id: "assistant", input: { messages: [{ role: "user", content: "go" }] } };

describe("in one tick of the event loop, a long response writes at most one part:", () => {
  test.each([
    ["the end of a run", async () => {}, "/threads/fat/runs", many],
    ["the threads of LangGraph's clients", fatThreads, "/langgraph/threads/search", { limit: 100 }],
    ["the history of a LangGraph thread", fatThread, "/langgraph/threads/fat/history", {}],
    ["the values with which a LangGraph run ends", fatThread, "/langgraph/threads/fat/runs/wait", graphRun],
    [
      "the values that a LangGraph run streams",
      fatThread,
      "/langgraph/threads/fat/runs/stream",
      { ...graphRun, stream_mode: ["values"] },
    ],
    ["a snapshot of AG-UI", fatThread, "/ag-ui/agent/assistant/connect", { ...input, forwardedProps: {} }],
    [
      "the tasks of A2A",
      fatTasks,
      "/a2a/assistant",
      rpc("ListTasks", { contextId: "context", historyLength: 10 }),
    ],
  ])("%s", async (_name, prepare, path, body) => {
    const send = await served();
    await prepare(send);
    let answer = { status: 0, text: "" };
    const most = await mostInOneTurn(async () => {
      answer = await send(path, body, path.startsWith("/threads") ? "application/json" : "*/*");
    });
    expect(answer.status).toBe(200);
    const missing = texts.filter((text) => !answer.text.includes(text.slice(0, 100)));
    expect(missing).toEqual([]);
    const data = [...answer.text.matchAll(/^data: (.*)$/gm)].map(([, json = ""]) => json);
    for (const json of data.length > 0 ? data : [answer.text]) JSON.parse(json);
    expect(most).toBeLessThan(2 * A_TURN);
  });
});

test("in one tick of the event loop, at most one slice of many permission rules is written", async () => {
  const { url } = await startServer();
  const path = `${url}/agents/assistant/permissions`;
  const headers = { "content-type": "application/json" };
  const rules = Array.from({ length: 150 }, (_, index) => ({
    id: `rule-${index}`,
    deny: "execute",
    message: "é".repeat(16_000),
  }));
  for (const rule of rules) await fetch(path, { method: "POST", headers, body: JSON.stringify(rule) });
  let items: { id: string }[] = [];
  const most = await mostInOneTurn(async () => {
    const reply = await fetch(path);
    ({ items } = (await reply.json()) as { items: { id: string }[] });
  });
  expect(new Set(items.map(({ id }) => id))).toEqual(new Set(rules.map(({ id }) => id)));
  expect(most).toBeLessThan(1024 * KIB);
});
