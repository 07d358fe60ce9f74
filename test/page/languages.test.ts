import { afterAll, expect } from "vitest";
import { startChromium } from "../support/chromium.ts";
import { needing } from "../support/needing.ts";
import { startServer } from "../support/server.ts";
import { runs, seen } from "./seen.ts";

const chromium = await startChromium();
afterAll(() => chromium?.close());
const { test } = needing(chromium, "Chromium");

test("words, numbers and dates have one language, which a person can choose", async () => {
  const { url } = await startServer();
  await runs(url, "one", { input: "Go." });
  const { page, go } = await seen(chromium, url);
  const language = () => page.evaluate("document.documentElement.lang");
  expect(await language()).toBe("en-US");
  await go("#/settings", "Language");
  const reloaded = page.waitForEvent("load");
  await page.getByLabel("Deutsch").click();
  await reloaded;
  await page.getByRole("heading", { name: "Einstellungen" }).waitFor();
  expect(await language()).toBe("de");
  await go("#/runs", /\d,\d s|\d ms/);
  await page.getByRole("heading", { name: "Läufe" }).click();
  await page.keyboard.press("?");
  await page.getByText("Nächste Unterhaltung").waitFor();
  expect(await page.locator(".keys dd", { hasText: /\b(the|conversation)\b/ }).count()).toBe(0);
  expect(await page.locator(".keys kbd").allTextContents()).toEqual(
    expect.arrayContaining(["Strg", "Umschalt", "Eingabe"]),
  );
  await page.keyboard.press("Escape");
  await go("#/settings", "Sprache");
  await page.getByLabel("Wie der Browser").click();
  await page.getByRole("heading", { name: "Settings" }).waitFor();
});
