// What a person sees of the page while another window is in front of it.

import type { Page } from "playwright-core";
import { expect } from "vitest";
import { openTab, test } from "../support/chromium.ts";
import { gate } from "../support/gate.ts";
import { startServer } from "../support/server.ts";
import { runs } from "./seen.ts";

const ASKING = `
agents:
  assistant:
    model: "scripted:test"
    backend: { type: local }
    tools: [gate]
    permissions: { rules: [{ allow: gate }, { ask: execute }] }
`;

/** The browser of the tests has one window: what it says of the tab, and what it would show, is recorded. */
const BROWSER = `
  window.shown = [];
  window.hide = (isHidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, value: isHidden });
    document.dispatchEvent(new Event("visibilitychange"));
  };
  window.asked = 0;
  window.Notification = class {
    static permission = "default";
    static async requestPermission() { window.asked++; return (Notification.permission = "granted"); }
    constructor(title, { body }) { window.shown.push(title + ": " + body); }
  };
`;

const icon = (page: Page) => page.evaluate<string>(`document.querySelector("link[rel=icon]").href`);

test("the tab shows its content, and that a run is active, waiting, or finished until it is seen", async () => {
  const { tool, open } = gate();
  const { url } = await startServer({
    agents: ASKING,
    tools: [tool],
    script: (request) => {
      if (request.messages.at(-1)?.role === "tool") return { say: "Written." };
      const asked = JSON.stringify(request.messages.findLast(({ role }) => role === "user"));
      return asked.includes("May")
        ? { say: "May I?", call: [{ tool: "execute", args: { command: "ls" } }] }
        : { say: "Wait.", call: [{ tool: "gate" }] };
    },
  });
  await fetch(`${url}/threads`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ id: "report", title: "Quarterly report" }),
  });
  const { page } = await openTab(`${url}/#/t/report`, {
    before: async (opened) => void (await opened.addInitScript(BROWSER)),
  });
  const title = () => page.title();
  await expect.poll(title).toBe("Quarterly report · Skein");
  const plain = await icon(page);

  await page.evaluate(`location.hash = "#/settings"`);
  await page.getByLabel("Notify me when a run ends").check();
  await expect.poll(() => page.evaluate("[asked, Notification.permission]")).toEqual([1, "granted"]);
  await page.evaluate(`location.hash = "#/t/report"`);
  await expect.poll(title).toBe("Quarterly report · Skein");

  await page.evaluate("hide(true)");
  await runs(url, "report", { input: "Write it.", background: true });
  await expect.poll(title).toBe("● Quarterly report · Skein");
  await expect.poll(() => icon(page)).toContain("data:image/svg+xml");
  open();
  await expect.poll(title).toBe("✓ Quarterly report · Skein");
  await expect.poll(() => page.evaluate("shown")).toEqual(["Quarterly report: Finished"]);
  await page.evaluate("hide(false)");
  await expect.poll(title).toBe("Quarterly report · Skein");
  await expect.poll(() => icon(page)).toBe(plain);

  await page.evaluate("hide(true)");
  await runs(url, "report", { input: "May you?" });
  await expect.poll(title).toBe("? Quarterly report · Skein");
  await expect.poll(() => page.evaluate("shown.at(-1)")).toBe("Quarterly report: Waiting for your answer");
});

test("the browser asks about notifications only when they are turned on", async () => {
  const { url } = await startServer();
  const { page } = await openTab(url, {
    before: async (opened) => void (await opened.addInitScript(BROWSER)),
  });
  await page.getByRole("heading", { name: "New conversation" }).waitFor();
  await page.evaluate("hide(true)");
  await runs(url, "other", { input: "Go." });
  await expect.poll(() => page.title()).toBe("✓ New conversation · Skein");
  await expect.poll(() => page.evaluate("[asked, shown]")).toEqual([0, []]);
});
