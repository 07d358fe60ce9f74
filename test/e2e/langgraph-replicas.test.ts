// LangChain's hook for React before two replicas on one Redis, over connections that break at any moment.

import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { useStream } from "@langchain/react";
import { afterAll, expect, onTestFinished, test } from "vitest";
import type { Script } from "../../src/agent/models/scripted.ts";
import { needing } from "../support/needing.ts";
import { reactPage } from "../support/react-page.ts";
import { startRedis } from "../support/redis.ts";
import { startServer } from "../support/server.ts";

const redis = await startRedis();
afterAll(() => redis?.close());

const TURNS = 8;
const WORDS = Array.from({ length: 40 }, (_, index) => `word${index}`).join(" ");
const AGENTS = `
agents:
  assistant:
    model: scripted:test
    backend: { type: local }
    tools: [execute]
    permissions: { rules: [{ ask: execute, message: May it? }] }
`;
/** Each turn asks once, and speaks before and after. */
const script: Script = ({ messages }) => {
  const turn = messages.filter(({ role }) => role === "user").length - 1;
  if (messages.at(-1)?.role === "tool") return { say: `done ${turn} ${WORDS}`, delay_ms: 5 };
  return {
    say: `${turn} ${WORDS}`,
    delay_ms: 5,
    call: [{ tool: "execute", args: { command: "echo hi" } }],
  };
};

/**
 * A proxy before several ports. Each connection goes to the next one; one that carries an event stream breaks after a part of
 * a second, at another moment each time.
 */
async function breakingProxy(ports: readonly number[]) {
  const sockets = new Set<Socket>();
  let connections = 0;
  let cuts = 0;
  const server = createServer((client) => {
    const upstream = connect(ports[connections++ % ports.length] ?? 0, "127.0.0.1");
    const moment = 150 + ((connections * 7_919) % 600);
    let isStream = false;
    const close = () => {
      for (const socket of [client, upstream]) socket.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", close);
      socket.on("close", () => {
        sockets.delete(socket);
        close();
      });
    }
    client.on("data", (chunk) => upstream.write(chunk));
    upstream.on("data", (chunk) => {
      client.write(chunk);
      if (isStream || !chunk.includes("text/event-stream")) return;
      isStream = true;
      setTimeout(() => {
        cuts++;
        close();
      }, moment).unref();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || !address) throw new Error("A server that listens has an address.");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { url: `http://127.0.0.1:${address.port}`, cuts: () => cuts };
}

needing(redis, "redis-server").describe(
  "a page in front of two replicas, over connections that break",
  () => {
    test("shows every word once and asks each question once, in every turn", async () => {
      const config = { store: "redis", redis: { url: redis?.url } };
      const one = await startServer({ config, script, agents: AGENTS });
      const other = await startServer({ config, script, agents: AGENTS });
      const proxy = await breakingProxy([one, other].map(({ url }) => Number(new URL(url).port)));
      const page = await reactPage(() => {
        const stream = useStream({
          apiUrl: `${proxy.url}/langgraph`,
          assistantId: "assistant",
          maxReconnectAttempts: 20,
          reconnectDelayMs: () => 20,
        });
        const { messages, interrupts, isLoading, error } = stream;
        return { stream, interrupts, isLoading, error, texts: messages.map(({ text }) => text) };
      });
      const expected: string[] = [];
      for (let turn = 0; turn < TURNS; turn++) {
        const messages = [{ type: "human", content: `turn ${turn}` }];
        await page.current.stream.submit({ messages } as never);
        await page.until(({ interrupts, isLoading }) => interrupts.length > 0 && !isLoading);
        expect(page.current.interrupts).toHaveLength(1);
        expected.push(`turn ${turn}`, `${turn} ${WORDS}`);
        await expect.poll(() => page.current.texts).toEqual(expected);
        await page.current.stream.respond(
          { decisions: [{ type: "approve" }] },
          { interruptId: page.current.interrupts[0]?.id ?? "" },
        );
        await page.until(({ isLoading, texts }) => !isLoading && texts.at(-1) === `done ${turn} ${WORDS}`);
        expected.push(expect.stringContaining("hi"), `done ${turn} ${WORDS}`);
        await expect.poll(() => page.current.texts).toEqual(expected);
        expect(page.current.error).toBeUndefined();
      }
      expect(proxy.cuts()).toBeGreaterThan(2 * TURNS);
      const thread = page.current.stream.threadId ?? "";
      const runs = (await (await fetch(`${one.url}/threads/${thread}/runs?limit=100`)).json()) as {
        items: object[];
      };
      expect(runs.items).toHaveLength(2 * TURNS);
    });
  },
);
