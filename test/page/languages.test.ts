import { expect } from "vitest";
import { newApiKey } from "../../src/server/auth/api-keys.ts";
import { test } from "../support/chromium.ts";
import { startServer } from "../support/server.ts";
import { runs, seen } from "./seen.ts";

test("texts, numbers and dates use one language, which a person can choose", async () => {
  const { url } = await startServer();
  await runs(url, "one", { input: "Go." });
  const { page, go } = await seen(url);
  const language = () => page.evaluate("document.documentElement.lang");
  await expect.poll(() => language()).toBe("en-US");
  await go("#/settings", "Language");
  const reloaded = page.waitForEvent("load");
  await page.getByLabel("Deutsch").click();
  await reloaded;
  await page.getByRole("heading", { name: "Einstellungen" }).waitFor();
  await expect.poll(() => language()).toBe("de");
  await go("#/runs", /\d,\d s|\d ms/);
  await page.getByRole("heading", { name: "Läufe" }).click();
  await page.keyboard.press("?");
  await page.getByText("Nächste Unterhaltung").waitFor();
  await expect.poll(() => page.locator(".keys dd", { hasText: /\b(the|conversation)\b/ }).count()).toBe(0);
  await expect
    .poll(() => page.locator(".keys kbd").allTextContents())
    .toEqual(expect.arrayContaining(["Strg", "Umschalt", "Eingabe"]));
  await page.keyboard.press("Escape");
  await go("#/settings", "Sprache");
  await page.getByLabel("Wie der Browser").click();
  await page.getByRole("heading", { name: "Settings" }).waitFor();
});

test("an error is shown in the page's language, with the server's own text below", async () => {
  const key = newApiKey().key;
  const { url } = await startServer({
    config: { auth: { scheme: "api_key", bootstrap_key: key } },
    script: [{ say: "Well", fail: { code: "model_rejected", message: "It has no room." } }],
  });
  const { page, allowErrors } = await seen(url);
  await page.evaluate(`localStorage.setItem("skein.language", "de")`);
  await page.reload();
  const signIn = async (given: string) => {
    await page.getByLabel("API-Schlüssel").fill(given);
    await page.getByRole("button", { name: "Anmelden" }).click();
  };
  await signIn("sk_wrong");
  const refused = page.getByRole("alert").filter({ hasText: "Die Anmeldung ist ungültig." });
  await expect.poll(async () => (await refused.innerText()).split("\n")).toHaveLength(2);
  await signIn(key);
  await page.getByRole("textbox", { name: "Nachricht" }).fill("Los.");
  await page.keyboard.press("Enter");
  const note = page.getByRole("alert").filter({ hasText: "Der Anbieter des Modells lehnt die Anfrage ab." });
  await note.getByText("It has no room.").waitFor();
  await expect.poll(() => note.locator("[lang=en]").innerText()).toBe("It has no room.");
  await page.evaluate(`location.hash = "#/runs"`);
  const cell = page.locator(".runs .problem");
  await expect
    .poll(async () => (await cell.innerText()).split("\n"))
    .toEqual(["Der Anbieter des Modells lehnt die Anfrage ab.", "It has no room."]);
  allowErrors("401");
});
