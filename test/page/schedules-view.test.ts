import { expect } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { test } from "../support/chromium.ts";
import { startServer } from "../support/server.ts";
import { seen } from "./seen.ts";

test("a schedule can be created with a preview of its next times, run, paused, continued, changed and deleted", async () => {
  const { url } = await startServer({ script: () => ({ say: "Good morning." }) });
  const { page, go, allowErrors, screenshot } = await seen(url);
  await go("#/schedules", "Schedules that you create appear here.");
  await page.getByRole("button", { name: "New schedule" }).click();
  const form = page.getByRole("region", { name: "New schedule" });
  await form.getByLabel("Name").fill("briefing");
  await form.getByLabel("Repeat at").fill("0 99 * * *");
  await form.getByText("column 3").waitFor();
  await form.getByLabel("Repeat at").fill("30 9 * * MON-FRI");
  await form.getByLabel("Time zone").fill("Asia/Kathmandu");
  const times = form.getByRole("table", { name: "Next times" }).getByRole("row");
  await expect.poll(() => times.count()).toBe(6);
  await expect.poll(() => times.nth(1).innerText()).toMatch(/09:30/);
  await form.getByLabel("Message").fill("Summarize.");
  await screenshot("page-schedule-form");
  await form.getByRole("button", { name: "Create schedule" }).click();

  const list = page.getByRole("region", { name: "Schedules" });
  await list.getByText("briefing", { exact: true }).click();
  await list.getByText("30 9 * * MON-FRI · Asia/Kathmandu").waitFor();
  await list.getByRole("button", { name: "Run now" }).click();
  await list.getByText("Started.").waitFor();
  await screenshot("page-schedule");
  await list.getByRole("button", { name: "Pause" }).click();
  await list.getByText("Paused by request.").waitFor();
  const { schedules } = createClient({ baseUrl: url });
  expect(await schedules.get("briefing")).toMatchObject({ status: "paused", input: "Summarize." });
  await list.getByRole("button", { name: "Resume" }).click();
  await list.getByRole("button", { name: "Pause" }).waitFor();

  await list.getByRole("button", { name: "Edit briefing" }).click();
  await list.getByLabel("Message").fill("Summarize the night.");
  await list.getByText("More settings").click();
  await list.getByLabel("If the last run is still in progress").selectOption("queue");
  await list.getByRole("button", { name: "Save" }).click();
  await list.getByText("Summarize the night.", { exact: true }).waitFor();
  expect(await schedules.get("briefing")).toMatchObject({
    ...{ cron: "30 9 * * MON-FRI", timezone: "Asia/Kathmandu", overlap: "queue", catch_up: "latest" },
  });

  await list.getByRole("link", { name: "Open its conversation" }).click();
  await page.getByLabel("Messages").getByText("Good morning.").waitFor();
  await go("#/schedules", "briefing");
  await list.getByText("briefing", { exact: true }).click();
  await list.getByRole("button", { name: "Delete" }).click();
  await list.getByRole("button", { name: "Delete" }).last().click();
  await list.getByText("Schedules that you create appear here.").waitFor();
  allowErrors("400");
});

test("a schedule for a single time uses the browser's zone, and shows its last run", async () => {
  let late = 0;
  const { url } = await startServer({ script: () => ({ say: "Done." }), now: () => Date.now() + late });
  const { page, go } = await seen(url);
  await go("#/schedules", "Schedules that you create appear here.");
  await page.getByRole("button", { name: "New schedule" }).click();
  const form = page.getByRole("region", { name: "New schedule" });
  await form.getByLabel("Once").check();
  await form.getByLabel("Name").fill("launch");
  await form.getByLabel("Time", { exact: false }).first().fill("2100-05-04T10:00");
  await form.getByLabel("Message").fill("Publish.");
  await form.getByRole("button", { name: "Create schedule" }).click();
  const { schedules } = createClient({ baseUrl: url });
  const at = await page.evaluate<string>(`new Date("2100-05-04T10:00").toISOString()`);
  await expect.poll(async () => (await schedules.list()).items).toMatchObject([{ id: "launch", at }]);

  await schedules.put("launch", { at: new Date(Date.now() + 300_000).toISOString(), input: "Publish." });
  late = 300_000;
  await go("#/runs", "Done");
  await go("#/schedules", "completed");
  const list = page.getByRole("region", { name: "Schedules" });
  await list.getByText("launch", { exact: true }).click();
  await list.getByText("started").waitFor();
  await list.getByRole("link", { name: "Open its conversation" }).click();
  await page.getByLabel("Messages").getByText("Publish.").waitFor();
});
