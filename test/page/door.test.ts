// The front door: what a person meets first.

import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { openTab, test } from "../support/chromium.ts";
import { startServer } from "../support/server.ts";
import { seen } from "./seen.ts";

const AGENTS = `
agents:
  assistant:
    model: "scripted:test"
    suggestions: [What can you do?, "<b>Count</b> to ten"]
  clerk:
    model: "scripted:test"
    suggestions: [File my letters]
`;

const focused = (page: Page) =>
  page.evaluate<string>(`document.activeElement.getAttribute("aria-label") ?? document.activeElement.type`);

const WIDTHS = [1440, 1024, 390] as const;

test("the form for a key is in the middle, has the focus, and explains where keys come from", async () => {
  const { url } = await startServer({ config: { auth: { scheme: "api_key" } } });
  const tab = await seen(url);
  await tab.page.getByText("Ask your operator for one.").waitFor();
  await expect.poll(() => focused(tab.page)).toBe("password");
  await expect.poll(() => tab.page.getByRole("heading", { name: "Skein" }).locator("svg").count()).toBe(1);
  for (const width of WIDTHS) {
    await tab.look({ theme: "light", width, height: 800 });
    const place = `(() => {
      const box = document.querySelector("form").getBoundingClientRect();
      const isInTheMiddle = Math.abs(box.left - (innerWidth - box.right)) <= 1;
      return [innerWidth, isInTheMiddle, box.top > 50 && innerHeight - box.bottom > 50];
    })()`;
    await expect.poll(() => tab.page.evaluate(place)).toEqual([width, true, true]);
  }
  tab.allowErrors("401");
});

test("the operator's message to people who sign in is shown there, as text", async () => {
  const note = "Keys: ask <b>Ada</b>, room 12.\nhttps://wiki.example/\u202ekeys";
  const { url } = await startServer({ config: { auth: { scheme: "api_key", note } } });
  const { page, allowErrors } = await seen(url);
  await page.getByText("Keys: ask <b>Ada</b>, room 12.").waitFor();
  await page.getByText("https://wiki.example/⟨U+202E⟩keys").waitFor();
  allowErrors("401");
});

describe("a new conversation", () => {
  test("begins with an empty, focused field, and offers the agent's suggestions", async () => {
    const { url } = await startServer({ agents: AGENTS });
    const { page } = await seen(url);
    const field = page.getByLabel("Message", { exact: true });
    await page.getByRole("button", { name: "What can you do?" }).waitFor();
    const written = async () => [await field.inputValue(), await focused(page)];
    await expect.poll(written).toEqual(["", "Message"]);
    await page.getByRole("heading", { name: "New conversation" }).click();
    await page.getByRole("button", { name: "<b>Count</b> to ten" }).click();
    await expect.poll(written).toEqual(["<b>Count</b> to ten", "Message"]);
    await page.getByLabel("Agent").selectOption("clerk");
    await page.getByRole("button", { name: "File my letters" }).waitFor();
    await expect.poll(() => page.getByRole("button", { name: "What can you do?" }).count()).toBe(0);
    await page.getByText("set ANTHROPIC_API_KEY or OPENAI_API_KEY for a real one").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("heading", { name: "New conversation" }).click();
    await page.keyboard.press("n");
    await expect.poll(() => focused(page)).toBe("Message");
  });

  test("keeps its field visible at each width", async () => {
    const { url } = await startServer({ agents: AGENTS });
    const tab = await seen(url);
    await tab.page.getByRole("button", { name: "What can you do?" }).waitFor();
    for (const width of WIDTHS) {
      await tab.look({ theme: "dark", width, height: 700 });
      const bottom = `document.querySelector(".suggestions").getBoundingClientRect().bottom`;
      await expect.poll(() => tab.page.evaluate(`[innerWidth, ${bottom} <= 700]`)).toEqual([width, true]);
    }
  });
});

test("the first view requests each list once", async () => {
  const { url } = await startServer({ agents: AGENTS });
  const asked: string[] = [];
  const { page } = await openTab(url, {
    ownContext: true,
    before: async (opened) => {
      await opened.clock.install();
      opened.on("request", (request) => {
        const { pathname, search } = new URL(request.url());
        if (!pathname.startsWith("/page/")) asked.push(pathname + search);
      });
    },
  });
  await page.getByText("Your conversations appear here.").waitFor();
  await page.clock.runFor(3_000);
  await expect.poll(() => asked.filter((path) => path.startsWith("/threads")).length).toBe(2);
  expect(asked.toSorted()).toEqual([...new Set(asked)].toSorted());
});

test("an unknown address shows an error and a link to the start", async () => {
  const { url } = await startServer();
  const { page, go } = await seen(url);
  for (const hash of ["#/nowhere", "#/t/", "#/runs/x/y", "#/%E0%A4%A"]) {
    await go("#/settings", "Colours");
    await go(hash, "Page not found");
  }
  await page.getByRole("link", { name: "Go to the home page" }).click();
  await page.getByRole("heading", { name: "New conversation" }).waitFor();
});

test("the navigation shows who is signed in, the server and its version, and a link to the docs", async () => {
  const { url } = await startServer();
  const { page } = await seen(url);
  const { version } = (await (await fetch(`${url}/health`)).json()) as { version: string };
  await page.getByTitle("Signed in as default of default").waitFor();
  await page.getByText(`${new URL(url).host} · ${version}`).waitFor();
  await expect.poll(() => page.getByRole("link", { name: "Docs" }).getAttribute("href")).toBe("docs");
});

test("the page uses the text size that a person has set in the browser", async () => {
  const { url } = await startServer();
  const { page } = await seen(url);
  await page.getByRole("heading", { name: "New conversation" }).waitFor();
  const size = () => page.evaluate<string>("getComputedStyle(document.documentElement).fontSize");
  await expect.poll(() => size()).toBe("15px");
  const session = await page.context().newCDPSession(page);
  await session.send("Page.enable");
  await session.send("Page.setFontSizes", { fontSizes: { standard: 32 } });
  await expect.poll(size).toBe("30px");
});
