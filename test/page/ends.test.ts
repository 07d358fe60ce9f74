// How a run ended, as a person sees and hears it: one word in the conversation, in the list and among the runs.

import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { test } from "../support/chromium.ts";
import { gate, gated, WITH_GATE } from "../support/gate.ts";
import { startServer } from "../support/server.ts";
import { runs, seen } from "./seen.ts";

const sees = (page: Page, text: string | RegExp) =>
  page.getByText(text).filter({ visible: true }).first().waitFor();
const says = async (page: Page, text: string) => {
  await page.getByLabel("Message", { exact: true }).fill(text);
  await page.keyboard.press("Enter");
};
const announced = (page: Page, text: string) =>
  page.locator(".status-line [role=status]").getByText(text, { exact: true }).waitFor();

describe("the end of a run is announced in one word, visibly and audibly", () => {
  test("a run that a person stopped is neither failed nor done", async () => {
    const { url } = await startServer({ script: [{ say: "and on ".repeat(900), delay_ms: 100 }] });
    const tab = await seen(url);
    const { page } = tab;
    await says(page, "A tale.");
    await sees(page, "and on");
    await page.getByRole("button", { name: "Stop", exact: false }).last().click();
    await announced(page, "Stopped");
    for (const wrong of ["This attempt failed.", "Done"])
      await expect.poll(() => page.getByText(wrong, { exact: true }).count()).toBe(0);
    await tab.go("#/runs", "Stopped");
    await page.getByLabel("Status").selectOption("Waiting for an answer");
    await sees(page, "No runs match these filters.");
    await page.getByLabel("Status").selectOption("Stopped");
    await page.getByRole("row", { name: /Stopped/ }).waitFor();
  });

  test("a stop is shown once, next to the text that was kept", async () => {
    const { url } = await startServer({ script: [{ say: "and on ".repeat(900), delay_ms: 100 }] });
    const { page } = await seen(url);
    await says(page, "A tale.");
    await sees(page, "and on");
    await page.getByRole("button", { name: "Stop", exact: false }).last().click();
    for (const isAgain of [false, true]) {
      if (isAgain) await page.reload();
      await page.getByRole("button", { name: "Continue" }).waitFor();
      await sees(page, "Stopped here.");
      await announced(page, "Stopped");
      await expect.poll(() => page.locator(".status-line .unseen").count()).toBe(1);
      await expect.poll(() => page.locator(".run-note").count()).toBe(0);
    }
  });

  test("the list of conversations shows a limit, an empty answer and a failure as Runs does", async () => {
    const { url } = await startServer({
      script: ({ messages }) => {
        const asked = JSON.stringify(messages.at(-1));
        if (asked.includes("long")) return { say: "Once upon a", stop_reason: "max_tokens" };
        if (asked.includes("nothing")) return { usage: { input_tokens: 5 } };
        return { say: "Yes." };
      },
    });
    for (const input of ["A long tale", "Say nothing", "Well?"])
      await runs(url, input.replace(/\W/g, ""), { input });
    const tab = await seen(url);
    const { page } = tab;
    const rowOf = (title: string) => page.locator(".thread", { hasText: title });
    await rowOf("A long tale").getByText("Cut off").waitFor();
    await rowOf("Say nothing").getByText("No answer").waitFor();
    await expect.poll(() => rowOf("Well?").locator(".status").count()).toBe(0);
    await tab.go("#/t/Well", "Yes.");
    await says(page, "Another long one");
    await rowOf("Well?").getByText("Cut off").waitFor();
  });

  test("a failed or empty run shows a readable error and a button for the next attempt", async () => {
    const { url } = await startServer({
      script: [
        { fail: { code: "model_rejected", message: "Not `this` one" } },
        { usage: { input_tokens: 5 } },
        { say: "At last." },
      ],
    });
    const { page } = await seen(url);
    await says(page, "Try.");
    await announced(page, "Failed");
    await page.locator(".run-note.error code").first().waitFor();
    await page.getByRole("button", { name: "Try with another model" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Try again" }).waitFor();
    await page.keyboard.press("Escape");
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    await page.getByRole("button", { name: "Try again" }).click();
    await announced(page, "No answer");
    await page.reload();
    await sees(page, "The model returned no answer.");
    await page.getByRole("button", { name: "Try again" }).click();
    await sees(page, "At last.");
    await expect.poll(() => page.getByText("The model returned no answer.").count()).toBe(0);
  });

  test("a run that was stopped after a step is stopped, and its conversation does not wait", async () => {
    const { tool, open, entered } = gate();
    const { url } = await startServer({ agents: WITH_GATE, tools: [tool], script: gated });
    const tab = await seen(url);
    const { page } = tab;
    await says(page, "Begin.");
    await entered;
    const stop = page.getByRole("button", { name: "After this step" });
    // The server answers while the step lasts, some seconds later. By then it knows that the run is to stop.
    await Promise.all([page.waitForResponse("**/cancel"), stop.click()]);
    open();
    await announced(page, "Stopped");
    await page.getByRole("region", { name: "Conversations" }).getByText("Stopped").waitFor();
    await expect.poll(() => page.getByText("Waiting").count()).toBe(0);
    await tab.go("#/admin/runs", "Stopped");
    await page.getByRole("row", { name: /Stopped/ }).waitFor();
  });
});
