import { createHmac } from "node:crypto";
import { expect } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { test } from "../support/chromium.ts";
import { startServer } from "../support/server.ts";
import { seen } from "./seen.ts";

test("a trigger can be created with an address and a secret that is shown once, tried, and its deliveries are shown", async () => {
  const { url } = await startServer({ script: () => ({ say: "Triaged." }) });
  const { page, go, screenshot } = await seen(url);
  await go("#/schedules/triggers", "Triggers that you create appear here.");
  await page.getByRole("button", { name: "New trigger" }).click();
  const form = page.getByRole("region", { name: "New trigger" });
  await form.getByLabel("Name").fill("issues");
  await form.getByLabel("Message").fill("Triage {{body.issue.title}}.");
  await form.getByLabel("Filter").fill(`{"body.action": ["opened"]}`);
  await screenshot("page-trigger-form");
  await form.getByRole("button", { name: "Create trigger" }).click();
  const once = page.getByRole("dialog", { name: "Give both to the sender" });
  const shown = once.locator("code");
  const [address, secret] = [await shown.nth(0).innerText(), await shown.nth(1).innerText()];
  await screenshot("page-trigger-secret");
  await once.getByRole("button", { name: "Close" }).click();

  const deliver = (id: string, body: object, key = secret) => {
    const raw = JSON.stringify(body);
    const signature = `sha256=${createHmac("sha256", key).update(raw).digest("hex")}`;
    const headers = { "x-hub-signature-256": signature, "x-github-delivery": id, "x-github-event": "issues" };
    return fetch(address, {
      method: "POST",
      body: raw,
      headers: { ...headers, "content-type": "application/json" },
    });
  };
  const opened = { action: "opened", issue: { title: "It broke" } };
  expect((await deliver("one", opened)).status).toBe(202);
  expect((await deliver("two", { action: "closed" })).status).toBe(202);
  expect((await deliver("three", opened, "wrong")).status).toBe(401);

  const list = page.getByRole("region", { name: "Triggers" });
  await list.getByText("issues", { exact: true }).click();
  const rows = list.getByRole("table", { name: "Deliveries" }).getByRole("row");
  const isListed = async (...words: string[]) =>
    (await rows.allTextContents()).some((row) => words.every((word) => row.toLowerCase().includes(word)));
  await expect
    .poll(async () => {
      await list.getByRole("button", { name: "Refresh deliveries" }).click();
      const listed = [["refused"], ["ignored", "two"], ["started", "one"]].map((words) => isListed(...words));
      return [await rows.count(), ...(await Promise.all(listed))];
    })
    .toEqual([4, true, true, true]);

  await list.getByText("Try it").click();
  await list.getByLabel("Body").fill(JSON.stringify({ action: "opened", issue: { title: "Tried" } }));
  await list.getByRole("button", { name: "Show the run" }).click();
  await list.getByText("Triage Tried.").waitFor();
  await list.getByLabel("Body").fill("{}");
  await list.getByRole("button", { name: "Show the run" }).click();
  await list.getByText("would be ignored").waitFor();
  await screenshot("page-trigger");

  await list.getByRole("button", { name: "New secret" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "New secret" }).click();
  const next = await shown.nth(1).innerText();
  expect(next).not.toBe(secret);
  await once.getByRole("button", { name: "Close" }).click();
  expect((await deliver("four", opened, next)).status).toBe(202);
  await list.getByRole("button", { name: "Pause" }).click();
  await list.getByRole("button", { name: "Resume" }).waitFor();
  expect((await deliver("five", opened, next)).status).toBe(404);

  await list.getByRole("button", { name: "Edit" }).click();
  const edit = page.getByRole("region", { name: "Edit issues" });
  await edit.getByLabel("Message").fill("Look at {{body.issue.title}}.");
  await edit.getByRole("button", { name: "Save" }).click();
  await list.getByText("Look at {{body.issue.title}}.", { exact: true }).waitFor();
  const { triggers } = createClient({ baseUrl: url });
  expect(await triggers.get("issues")).toMatchObject({ paused: true, filter: { "body.action": ["opened"] } });
  await list.getByRole("button", { name: "Resume" }).click();
  await list.getByRole("button", { name: "Pause" }).waitFor();
  expect((await deliver("five", opened, next)).status).toBe(202);

  await list.getByRole("link", { name: "Open its conversation" }).first().click();
  await page.getByLabel("Messages").getByText("Triaged.").waitFor();
  await go("#/schedules/triggers", "issues");
  await list.getByText("issues", { exact: true }).click();
  await list.getByRole("button", { name: "Delete" }).click();
  await list.getByRole("button", { name: "Delete" }).last().click();
  await list.getByText("Triggers that you create appear here.").waitFor();
});
