import { expect } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { test } from "../support/chromium.ts";
import { startServer } from "../support/server.ts";
import { webhookInbox } from "../support/webhook-inbox.ts";
import { seen } from "./seen.ts";

test("a webhook can be created with a secret that is shown once, tried, and its failed delivery resent", async () => {
  const inbox = await webhookInbox(204, 404);
  const { url } = await startServer({ config: { http_tools: { allow: "127.0.0.1" } } });
  const { page, go } = await seen(url);
  await go("#/tools", "Webhooks");
  const section = page.getByRole("region", { name: "Webhooks" });
  await section.getByLabel("Address").fill(inbox.url);
  await section.getByRole("button", { name: "Create a webhook" }).click();
  await section.getByText(/^whsec_/).waitFor();
  await section.getByText(`http://${inbox.host}/hook`).click();
  await section.getByText("No events were sent in the last day.").waitFor();
  await section.getByRole("button", { name: "Send a sample" }).click();
  await section.getByText("The receiver accepted the sample.").waitFor();

  const client = createClient({ baseUrl: url });
  const { id } = await client.start("t1", { input: "hello" });
  for await (const _ of client.runs.events("t1", id));
  await expect.poll(() => inbox.received.length).toBe(2);
  const failed = section.getByText("failed: it answered 404");
  await expect
    .poll(async () => {
      await section.getByRole("button", { name: "Refresh deliveries" }).click();
      return failed.count();
    })
    .toBe(1);
  await section.getByRole("button", { name: /^Send msg_/ }).click();
  await expect.poll(() => inbox.received.length).toBe(3);
  await section.getByRole("button", { name: "Delete" }).click();
  await section.getByText("Delete this webhook and its deliveries?").waitFor();
  await section.getByRole("button", { name: "Delete" }).last().click();
  await section.getByText("Webhooks that you create appear here.").waitFor();
});
