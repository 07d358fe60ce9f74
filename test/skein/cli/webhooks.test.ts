// `skein webhooks`, against a running server.

import { expect, test } from "vitest";
import {
  deleteWebhook,
  listDeliveries,
  listWebhooks,
  putWebhook,
  rotateWebhook,
  sendDelivery,
  testWebhook,
} from "../../../src/skein/cli/webhooks.ts";
import { startServer } from "../../support/server.ts";
import { post } from "../../support/sse.ts";
import { webhookInbox } from "../../support/webhook-inbox.ts";

test("skein webhooks creates, tests, lists and deletes webhooks, and resends a delivery", async () => {
  const inbox = await webhookInbox(204, 500, 404);
  const { url } = await startServer({ config: { http_tools: { allow: "127.0.0.1" } } });
  const server = { url, key: undefined };
  const made = await putWebhook(server, "mine", { address: inbox.url, only: "assistant" });
  expect(made.output).toMatch(/^whsec_/);
  expect((await rotateWebhook(server, "mine")).output).not.toBe(made.output);
  expect(await testWebhook(server, "mine")).toBe("The receiver accepted the sample.");
  await expect(testWebhook(server, "mine")).rejects.toThrow("it answered 500");
  await (await post(`${url}/threads/t1/runs`, { input: "hello" })).ended();
  await expect.poll(() => listDeliveries(server, "mine", "failed")).toMatch(/msg_.* run\.ended .* 404/);
  const [delivery = ""] = /msg_[\w-]+/.exec(await listDeliveries(server, "mine", undefined)) ?? [];
  expect(await sendDelivery(server, "mine", delivery)).toContain(delivery);
  await expect.poll(() => listDeliveries(server, "mine", "delivered")).toContain(delivery);
  expect(await listWebhooks(server)).toMatch(/mine +run\.ended,run\.failed +on +http:/);
  await putWebhook(server, "mine", { address: inbox.url, paused: true });
  expect(await listWebhooks(server)).toMatch(/mine .* paused/);
  expect(await deleteWebhook(server, "mine")).toBe("Deleted mine.");
  expect(await listWebhooks(server)).not.toContain("mine");
});
