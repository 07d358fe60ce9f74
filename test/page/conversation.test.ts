import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { test } from "../support/chromium.ts";
import { gate, gated, WITH_GATE } from "../support/gate.ts";
import { startServer } from "../support/server.ts";
import { json } from "../support/team.ts";
import { seen } from "./seen.ts";

const sees = (page: Page, text: string) => page.getByText(text).filter({ visible: true }).first().waitFor();
const says = async (page: Page, text: string) => {
  await page.getByLabel("Message", { exact: true }).fill(text);
  await page.keyboard.press("Enter");
};
const said = (page: Page) => page.getByRole("article", { name: "You" }).locator(".words").allTextContents();

describe("a message", () => {
  test("whose reply never arrived is sent again after a reload, and starts one run", async () => {
    const { url } = await startServer({ script: [{ say: "Here I am." }] });
    const { page } = await seen(url);
    const arrived = Promise.withResolvers<void>();
    let isHeld = false;
    await page.route("**/runs", async (route) => {
      if (isHeld || route.request().method() !== "POST") return route.continue();
      // The server has it; the page never hears of it.
      isHeld = true;
      await route.fetch();
      arrived.resolve();
    });
    await says(page, "Only once.");
    await arrived.promise;
    await page.reload();
    await sees(page, "Here I am.");
    await expect.poll(() => said(page)).toEqual(["Only once."]);
    expect((await json(`${url}/runs`)).items).toHaveLength(1);
  });

  test("that has not been sent yet survives a reload", async () => {
    const { url } = await startServer();
    const { page } = await seen(url);
    await page.getByLabel("Message", { exact: true }).fill("Half a thought");
    await page.reload();
    await expect.poll(() => page.getByLabel("Message", { exact: true }).inputValue()).toBe("Half a thought");
  });

  test("can be edited, and is then answered again", async () => {
    const { url } = await startServer({ script: (_, call) => ({ say: `Answer ${call + 1}.` }) });
    const { page } = await seen(url);
    await says(page, "To Sweden.");
    await sees(page, "Answer 1.");
    await page.getByRole("article", { name: "You" }).hover();
    await page.getByRole("button", { name: "Rewrite" }).click();
    await says(page, "To Norway.");
    await sees(page, "Answer 2.");
    await expect.poll(() => said(page)).toEqual(["To Norway."]);
    await expect.poll(() => page.getByText("Answer 1.").count()).toBe(0);
  });

  test("that is edited in another tab is replaced in this one too", async () => {
    const { url } = await startServer({ script: (_, call) => ({ say: `Answer ${call + 1}.` }) });
    const { page } = await seen(url);
    await says(page, "To Sweden.");
    await sees(page, "Answer 1.");
    const other = (await seen(page.url())).page;
    await other.getByRole("article", { name: "You" }).hover();
    await other.getByRole("button", { name: "Rewrite" }).click();
    await says(other, "To Norway.");
    await sees(page, "Answer 2.");
    await expect.poll(() => said(page)).toEqual(["To Norway."]);
    await expect.poll(() => page.getByText("Answer 1.").count()).toBe(0);
  });
});

test("files can be attached to a message: chosen, pasted and dropped, and are sent again with it", async () => {
  const { url } = await startServer({ script: () => ({ say: "Three files." }) });
  const { page } = await seen(url);
  await page.locator(".composer input[type=file]").setInputFiles({
    ...{ name: "chosen.csv", mimeType: "text/csv", buffer: Buffer.from("a,b") },
  });
  await page.getByText("chosen.csv").waitFor();
  // What Chromium does when a person pastes a picture, and when one lets a file go over the conversation.
  await page.evaluate(`
    const holding = (...file) => {
      const data = new DataTransfer();
      data.items.add(new File(...file));
      return data;
    };
    const happening = { bubbles: true, cancelable: true };
    const [field] = document.getElementsByTagName("textarea");
    const clipboardData = holding([new Uint8Array([137, 80, 78, 71])], "pasted.png", { type: "image/png" });
    field.dispatchEvent(new ClipboardEvent("paste", { ...happening, clipboardData }));
    const dataTransfer = holding(["# Notes"], "dropped.md", { type: "text/markdown" });
    document.querySelector(".log").dispatchEvent(new DragEvent("drop", { ...happening, dataTransfer }));
  `);
  await page.getByText("dropped.md").waitFor();
  await page
    .getByRole("button", { name: /^Remove/ })
    .nth(2)
    .waitFor();
  await says(page, "Look at these.");
  await sees(page, "Three files.");
  const itemsOf = async <T>(path: string) =>
    ((await (await fetch(url + path)).json()) as { items: T[] }).items;
  const [thread] = await itemsOf<{ id: string }>("/threads");
  const sent = async () =>
    (await itemsOf<{ id: string; content: object[] }>(`/threads/${thread?.id}/messages`))[0];
  const message = await sent();
  expect(message?.content).toEqual([
    { type: "text", text: "Look at these." },
    expect.objectContaining({ type: "file", media_type: "text/csv", name: "chosen.csv" }),
    expect.objectContaining({ type: "image", media_type: "image/png" }),
    expect.objectContaining({ type: "file", media_type: "text/markdown", name: "dropped.md" }),
  ]);
  await page.getByRole("article", { name: "You" }).hover();
  await page.getByRole("button", { name: "Retry" }).click();
  const again = async () => {
    const { id, content } = (await sent()) ?? message ?? {};
    return id !== message?.id && content;
  };
  await expect.poll(again).toEqual(message?.content);
});

test("a file that is dropped elsewhere does not replace the page", async () => {
  const { url } = await startServer();
  const { page } = await seen(url);
  await page.getByRole("navigation", { name: "Skein" }).waitFor();
  const isTaken = await page.evaluate(`
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(["x"], "x.txt"));
    const dropped = (name) => new DragEvent(name, { bubbles: true, cancelable: true, dataTransfer });
    ["dragover", "drop"].map((name) => !document.querySelector("nav").dispatchEvent(dropped(name)));
  `);
  expect(isTaken).toEqual([true, true]);
});

describe("while a run is active", () => {
  test("it can be steered, and given the next message, which can be withdrawn after a reload", async () => {
    const { tool, open, entered } = gate();
    const { url } = await startServer({
      agents: WITH_GATE,
      tools: [tool],
      script: (_, call) => gated[call] ?? { say: `Answer ${call}.` },
    });
    const { page } = await seen(url);
    await says(page, "Begin.");
    await entered;
    await sees(page, "Running gate");
    await page.getByPlaceholder("Message the run in progress…").waitFor();
    await says(page, "Shorter.");
    await sees(page, "The agent reads this before the next step");
    await page.getByLabel("Message", { exact: true }).fill("And then this.");
    await page.getByRole("button", { name: "Queue" }).click();
    await sees(page, "Queued");
    await page.getByLabel("Message", { exact: true }).fill("Not this.");
    await page.getByRole("button", { name: "Queue" }).click();
    await sees(page, "Not this.");
    await page.reload();
    const second = page.locator(".waiting li", { hasText: "And then this." });
    await second.getByRole("button", { name: "Change" }).click();
    await page.getByLabel("The queued message").fill("And then that.");
    await page.keyboard.press("Enter");
    await page.locator(".waiting li", { hasText: "And then that." }).waitFor();
    await expect.poll(() => second.count()).toBe(0);
    const queued = page.locator(".waiting li", { hasText: "Not this." });
    await queued.getByRole("button", { name: "Take back" }).click();
    await expect.poll(() => queued.count()).toBe(0);
    await page.getByLabel("Message", { exact: true }).fill("This at once.");
    await page.getByRole("button", { name: "Queue" }).click();
    const urgent = page.locator(".waiting li", { hasText: "This at once." });
    await urgent.getByRole("button", { name: "Send now" }).click();
    await urgent.getByText("The agent reads this before the next step").waitFor();
    open();
    await sees(page, "Answer 2.");
    await expect.poll(() => said(page)).toEqual(["Begin.", "Shorter.", "This at once.", "And then that."]);
    await expect.poll(() => page.getByText("Queued").count()).toBe(0);
  });

  test("the text before a stop is kept after a reload, and can be continued", async () => {
    const { url } = await startServer({
      script: (_, call) =>
        call === 0
          ? { say: `Once upon a time ${"and on ".repeat(900)}`, delay_ms: 100 }
          : { say: "The end." },
    });
    const { page, screenshot } = await seen(url);
    await says(page, "A tale.");
    await sees(page, "Once upon a time");
    await page.getByRole("button", { name: "Stop", exact: false }).last().click();
    await sees(page, "Stopped here.");
    await page.reload();
    await sees(page, "Once upon a time");
    await screenshot("page-stopped-answer");
    await page.getByRole("button", { name: "Continue" }).click();
    await sees(page, "The end.");
    await expect
      .poll(() => page.getByRole("button", { name: "Continue" }).filter({ visible: true }).count())
      .toBe(0);
    await expect.poll(() => said(page)).toEqual(["A tale."]);
  });

  test("it can be stopped", async () => {
    const { tool, entered } = gate();
    const { url } = await startServer({ agents: WITH_GATE, tools: [tool], script: gated });
    const { page } = await seen(url);
    await says(page, "Begin.");
    await entered;
    await page.getByRole("button", { name: "Stop", exact: false }).last().click();
    await sees(page, "Stopped.");
  });
});
