// `interrupts.webhook`, which the operator sets for all users. How deliveries are signed and repeated: webhooks.test.ts.

import { pino } from "pino";
import { expect, test } from "vitest";
import { startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";
import { webhookInbox } from "../support/webhook-inbox.ts";

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

async function told(url: string) {
  const lines: string[] = [];
  const logger = pino({ level: "error" }, { write: (line: string) => void lines.push(line) });
  const server = await startServer({
    agents: "agents: { assistant: { model: scripted:test, tools: [ask_user] } }",
    script: () => ({ call: [{ tool: "ask_user", args: { question: "Which?" } }] }),
    config: { interrupts: { webhook: { url, secret: SECRET } } },
    logger,
  });
  const ask = async (thread: string) => {
    const viewer = await post(`${server.url}/threads/${thread}/runs`, { input: "go" });
    await viewer.ended();
    return `${server.url}${viewer.headers.get("location")?.replace(/\/events$/, "")}`;
  };
  return { app: server.app, ask, lines };
}

test("a run that waits for answers calls the webhook, and its cancellation does not", async () => {
  const { received, url } = await webhookInbox();
  const { ask } = await told(url);
  await fetch(`${await ask("t0")}/cancel`, { method: "POST" });
  await expect.poll(() => received.length).toBe(1);
  await ask("t1");
  await expect.poll(() => received.length).toBe(2);
  for (const [index, { message }] of received.entries())
    expect(message).toMatchObject({
      type: "run.interrupted",
      data: { thread_id: `t${index}`, interrupts: [{ kind: "question", prompt: "Which?" }] },
    });
});

test("a webhook that refuses or does not respond delays nothing, and is logged without secrets", async () => {
  const { received, url } = await webhookInbox(404, "never");
  const { app, ask, lines } = await told(url);
  await ask("t1");
  await expect.poll(() => lines.length).toBe(1);
  await ask("t2");
  await expect.poll(() => received.length).toBe(2);
  await app.close();
  expect(lines).toHaveLength(2);
  expect(lines[0]).toContain("it answered 404");
  for (const line of lines) expect(line).not.toMatch(/whsec_|hidden|127\.0\.0\.1/);
});
