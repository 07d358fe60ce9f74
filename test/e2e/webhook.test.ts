import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { Webhook } from "standardwebhooks";
import { expect, onTestFinished, test } from "vitest";
import { startServer, temporaryFolder } from "../support/server.ts";
import { post } from "../support/sse.ts";

const PATIENCE = { timeout: 60_000 };
const SECRET = `whsec_${randomBytes(32).toString("base64")}`;
const AGENTS = `
agents:
  assistant: { model: scripted:test, tools: [ask_user] }
`;
const asking = { call: [{ tool: "ask_user", args: { question: "Which?" } }] };

interface Delivery {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** What is delivered there; each is answered with the next of these, and then with 204. */
async function inbox(...answers: (number | "never")[]) {
  const deliveries: Delivery[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    deliveries.push({ headers: request.headers, body });
    const answer = answers.shift() ?? 204;
    if (answer !== "never") response.writeHead(answer).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { deliveries, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/told?key=hidden` };
}

async function told(url: string, store: object = {}) {
  const lines: string[] = [];
  const logger = pino({ level: "error" }, { write: (line: string) => void lines.push(line) });
  const config = { interrupts: { webhook: { url, secret: SECRET } }, ...store };
  const server = await startServer({ agents: AGENTS, script: () => asking, config, logger });
  const ask = async (thread = "t1") =>
    (await post(`${server.url}/threads/${thread}/runs`, { input: "go" })).ended();
  return { ...server, ask, lines };
}

test("a run that waits for answers calls the webhook, with a signature that it can verify", async () => {
  const { deliveries, url } = await inbox();
  const { ask } = await told(url);
  await ask();
  await expect.poll(() => deliveries.length).toBe(1);
  const [{ headers, body }] = deliveries as [Delivery];
  const message = new Webhook(SECRET).verify(body, headers as Record<string, string>);
  expect(message).toMatchObject({
    type: "run.interrupted",
    data: {
      ...{ tenant: "default", user: "default", thread_id: "t1", agent: "assistant" },
      run_id: expect.stringMatching(/^run_/),
      interrupts: [{ kind: "question", prompt: "Which?" }],
    },
  });
});

test("a cancelled run does not call the webhook", async () => {
  const { deliveries, url } = await inbox();
  const { ask, url: server } = await told(url);
  const viewer = await post(`${server}/threads/t0/runs`, { input: "go" });
  await viewer.until(({ event }) => event === "on_interrupt");
  await viewer.ended();
  const run = viewer.headers.get("location")?.replace(/\/events$/, "");
  await fetch(`${server}${run}/cancel`, { method: "POST" });
  await ask("t1");
  await expect.poll(() => deliveries.length).toBe(2);
  for (const [index, { body }] of deliveries.entries()) expect(body).toContain(`"thread_id":"t${index}"`);
});

test("an unreachable webhook is called again with the same id", async () => {
  const { deliveries, url } = await inbox(500, 429);
  const { ask, lines } = await told(url);
  await ask();
  await expect.poll(() => deliveries.length).toBe(3);
  expect(new Set(deliveries.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
  expect(lines).toEqual([]);
});

test("a webhook that refuses or does not respond delays nothing, and is logged without secrets", async () => {
  const { deliveries, url } = await inbox(404, "never");
  const { app, ask, lines } = await told(url);
  await ask();
  await expect.poll(() => lines.length).toBe(1);
  await ask("t2");
  await expect.poll(() => deliveries.length).toBe(2);
  await app.close();
  expect(lines).toHaveLength(2);
  expect(lines[0]).toContain("it answered 404");
  for (const line of lines) expect(line).not.toMatch(/whsec_|hidden|127\.0\.0\.1/);
});

test("a notification that the receiver did not accept before the server stopped is sent by the next one with the same id", async () => {
  const { deliveries, url } = await inbox(...Array<number>(50).fill(500));
  const store = { store: "sqlite", data_dir: await temporaryFolder() };
  const first = await told(url, store);
  await first.ask();
  await expect.poll(() => deliveries.length).toBeGreaterThan(0);
  await first.app.close();
  const before = deliveries.length;
  const received = await inbox();
  const next = await told(received.url, store);
  await expect.poll(() => received.deliveries.length, PATIENCE).toBe(1);
  expect(received.deliveries[0]?.headers["webhook-id"]).toBe(deliveries[0]?.headers["webhook-id"]);
  expect(received.deliveries[0]?.body).toContain('"thread_id":"t1"');
  await next.ask("t2");
  await expect.poll(() => received.deliveries.length).toBe(2);
  expect(deliveries.length).toBe(before);
  expect([...first.lines, ...next.lines]).toEqual([]);
});
