import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { promisify } from "node:util";
import fastify from "fastify";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import { checkGrammar } from "../../../src/protocol/grammar.ts";
import { cutStalledResponses } from "../../../src/server/http/client-disconnect.ts";
import { textSeen } from "../../support/drain.ts";
import { startServer } from "../../support/server.ts";

/** Several times what the kernel holds for a connection, in one event and in one message. */
const WORD = "é".repeat(12_000_000);
const STALL_S = 1;

/** A run that said one long word has ended on thread `t1`. */
async function said() {
  const streams = { stall: STALL_S, heartbeat: 0.05 };
  const { url, app } = await startServer({ script: [{ say: WORD }], config: { streams } });
  const response = await fetch(`${url}/threads/t1/runs`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json", connection: "close" },
    body: JSON.stringify({ input: "go" }),
  });
  const { id } = (await response.json()) as { id: string };
  const connections = promisify(app.server.server.getConnections.bind(app.server.server));
  return { url, events: `/threads/t1/runs/${id}/events`, messages: "/threads/t1/messages", connections };
}

/** A connection that has asked for `path`, and reads nothing yet. HTTP/1.0: the body comes as it is. */
async function asked(url: string, path: string): Promise<Socket> {
  const { port, host } = new URL(url);
  const socket = connect(Number(port), "127.0.0.1").pause();
  await once(socket, "connect");
  socket.write(`GET ${path} HTTP/1.0\r\nHost: ${host}\r\n\r\n`);
  return socket;
}

/** Reads at most 128 KiB in ten milliseconds, so the whole takes longer than the server waits without progress. */
async function slowly(socket: Socket): Promise<{ head: string; body: string }> {
  const pieces: Buffer[] = [];
  const reading = setInterval(() => {
    const piece = socket.read(Math.min(128 * 1024, socket.readableLength)) as Buffer | null;
    if (piece) pieces.push(piece);
  }, 10);
  await once(socket, "close");
  clearInterval(reading);
  const text = Buffer.concat(pieces).toString();
  const end = text.indexOf("\r\n\r\n");
  return { head: text.slice(0, end), body: text.slice(end + 4) };
}

describe("a reader on a slow connection", () => {
  test("receives a long event completely although it takes longer than the stall time, without heartbeats inside", async () => {
    const { url, events } = await said();
    const { body } = await slowly(await asked(url, events));
    const blocks = body.split("\n\n").filter((block) => block !== "" && block !== ": heartbeat");
    const seen = blocks.map((block) =>
      JSON.parse(block.replace(/^id: .*\nevent: .*\ndata: /, "")),
    ) as StreamEvent[];
    expect(checkGrammar(seen)).toEqual([]);
    expect(textSeen(seen) === WORD).toBe(true);
  });

  test("receives a long response completely although it takes longer than the stall time", async () => {
    const { url, messages } = await said();
    const { head, body } = await slowly(await asked(url, messages));
    expect(head).toMatch(/^HTTP\/1\.1 200 /);
    const { items } = JSON.parse(body) as { items: { content: string }[] };
    expect(items.at(-1)?.content === WORD).toBe(true);
  });
});

describe("a reader that stops reading", () => {
  test.each(["events", "messages"] as const)("of %s is disconnected", async (what) => {
    const server = await said();
    const socket = await asked(server.url, server[what]);
    await expect.poll(() => server.connections()).toBe(1);
    await expect.poll(() => server.connections()).toBe(0);
    socket.destroy();
  });
});

test("a long response leaves no timer behind if its reader disconnects before it is ready, or receives it", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const server = fastify();
  onTestFinished(() => server.close());
  cutStalledResponses(server, STALL_S * 1000, { open: () => () => {} });
  const asking = Promise.withResolvers<void>();
  const timers = new Promise<number>((resolve) => {
    server.addHook("onSend", async () => resolve(vi.getTimerCount()));
  });
  server.get("/", async (_request, reply) => {
    const left = once(reply.raw, "close");
    asking.resolve();
    await left;
    return WORD;
  });
  const closing = Promise.withResolvers<unknown>();
  server.get("/ready", async (_request, reply) => {
    closing.resolve(once(reply.raw, "close"));
    return WORD;
  });
  const url = await server.listen({ port: 0 });
  const socket = await asked(url, "/");
  await asking.promise;
  socket.destroy();
  expect(await timers).toBe(0);
  expect((await (await fetch(`${url}/ready`)).text()) === WORD).toBe(true);
  await closing.promise;
  expect(vi.getTimerCount()).toBe(0);
});
