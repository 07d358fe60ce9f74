import { expect } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { newApiKey } from "../../src/server/auth/api-keys.ts";
import { test } from "../support/chromium.ts";
import { startServer } from "../support/server.ts";
import { seen } from "./seen.ts";

const headersOf = (tenant: string, user: string, scopes: string) => ({
  "x-skein-tenant": tenant,
  "x-skein-user": user,
  "x-skein-scopes": scopes,
});

/** Two users of one tenant and one of another; a run of ada works until it is stopped. */
async function furnished() {
  const { url } = await startServer({
    config: { auth: { scheme: "header", trusted_proxies: ["127.0.0.1"], external_operators: true } },
    script: ({ messages }) =>
      JSON.stringify(messages).includes("slowly") ? { say: "a b c", delay_ms: 60_000 } : { say: "Done." },
  });
  const as = (tenant: string, user: string) =>
    createClient({ baseUrl: url, headers: headersOf(tenant, user, "read,run") });
  for (const [tenant, user] of [
    ["acme", "ada"],
    ["acme", "bob"],
    ["other", "eve"],
  ] as const) {
    const { id } = await as(tenant, user).start("t", { input: "Go." });
    for await (const _ of as(tenant, user).runs.events("t", id));
  }
  await as("acme", "ada").start("slow", { input: "Say it slowly." });
  return { url, ada: as("acme", "ada") };
}

/** The page as it is to that user. */
async function opened(url: string, user: ReturnType<typeof headersOf>) {
  const tab = await seen(url);
  await tab.page.getByRole("heading", { name: "Skein" }).waitFor();
  await tab.page.setExtraHTTPHeaders(user);
  await tab.page.reload();
  await tab.page.getByRole("navigation", { name: "Skein" }).waitFor();
  tab.allowErrors("401");
  return tab;
}

test("an admin can list the users of the tenant, stop a run of one of them, and delete another", async () => {
  const { url, ada } = await furnished();
  const { page, go } = await opened(url, headersOf("acme", "root", "read,admin"));
  await page.getByRole("link", { name: "Admin" }).click();
  const row = (text: string) => page.getByRole("row").filter({ hasText: text });
  await row("ada").waitFor();
  const ofOthers = await row("eve").count();
  expect(ofOthers).toBe(0);

  await page.getByRole("button", { name: "Runs of ada" }).click();
  await page.getByText("Only runs of ada").waitFor();
  await expect.poll(() => row("bob").count()).toBe(0);
  await page.getByRole("button", { name: /^Stop run/ }).click();
  await page.getByText("Stop this run of ada?").waitFor();
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await row("Stopped").waitFor();
  expect((await ada.runs.list({ status: "cancelled" })).items).toMatchObject([{ thread_id: "slow" }]);
  await page.getByRole("button", { name: "Show all" }).click();
  await row("bob").first().waitFor();

  await go("#/admin/usage", "Model calls");
  await row("acme").waitFor();
  await go("#/admin/waiting", "No runs are waiting");
  await go("#/admin/users", "bob");
  await page.getByRole("button", { name: "Delete all data of bob" }).click();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await row("bob").waitFor({ state: "detached" });
  await row("ada").waitFor();
  const root = createClient({ baseUrl: url, headers: headersOf("acme", "root", "read,admin") });
  const actions = async () => (await root.admin.audit()).items.map(({ action }) => action);
  await expect.poll(actions).toContain("user.delete");
  await go("#/admin/trail", "user.delete");
  await row("run.cancel").first().waitFor();
});

test("an operator sees every tenant, and other users find no way there", async () => {
  const { url } = await furnished();
  const operator = await opened(url, headersOf("house", "ops", "read,operator"));
  await operator.page.getByRole("link", { name: "Admin" }).click();
  await operator.page.getByText("eve", { exact: true }).waitFor();
  await expect.poll(() => operator.page.getByRole("columnheader", { name: "Tenant" }).count()).toBe(1);

  const { page } = await opened(url, headersOf("acme", "ada", "read,run"));
  await expect.poll(() => page.getByRole("link", { name: "Admin" }).count()).toBe(0);
});

test("an admin creates a key for a user, sees it once, and revokes it", async () => {
  const { key } = newApiKey();
  const { url } = await startServer({
    config: { auth: { scheme: "api_key", bootstrap_key: key }, store: "sqlite" },
  });
  const { page, allowErrors, go } = await seen(url);
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Skein" }).waitFor();
  allowErrors("401");
  await go("#/admin/keys", "Create key");
  await page.getByLabel("User").fill("ada");
  await page.getByLabel("Purpose").fill("Laptop");
  await page.getByRole("button", { name: "Create key" }).click();
  const made = (await page.getByText(/^sk_/).textContent()) ?? "";
  const me = () => fetch(`${url}/me`, { headers: { authorization: `Bearer ${made}` } });
  expect(await (await me()).json()).toMatchObject({ user: "ada", scopes: ["read", "run"] });
  await page.getByRole("button", { name: "Revoke Laptop" }).click();
  await page.getByRole("button", { name: "Revoke", exact: true }).click();
  await page.getByRole("row").filter({ hasText: "Laptop" }).getByText("Revoked").waitFor();

  const { admin } = createClient({ baseUrl: url, headers: { authorization: `Bearer ${key}` } });
  for (let count = 0; count < 50; count++) await admin.createKey({ user: "bob", scopes: ["read"] });
  await go("#/admin/users", "Users");
  await go("#/admin/keys", "Show more");
  await page.getByRole("button", { name: "Show more" }).click();
  await page.getByRole("button", { name: "Show more" }).waitFor({ state: "detached" });
  await expect
    .poll(() => page.locator("tbody tr").count())
    .toBe((await admin.keys({ limit: 100 })).items.length);
});

test("an admin creates a webhook of the tenant and replaces its secret; an operator finds it under the tenant's name", async () => {
  const { url } = await furnished();
  const { page, go } = await opened(url, headersOf("acme", "root", "read,admin"));
  await go("#/admin/webhooks", "Webhooks that you create appear here.");
  const section = page.getByRole("region", { name: "Webhooks" });
  await section.getByLabel("Address").fill("https://example.com/all");
  await section.getByRole("button", { name: "Create a webhook" }).click();
  const secret = section.getByText(/^whsec_/);
  const first = await secret.textContent();
  await section.getByText("https://example.com/all").click();
  await section.getByText("No events were sent in the last day.").waitFor();
  await section.getByRole("button", { name: "New secret" }).click();
  await expect.poll(() => secret.count()).toBe(2);
  await expect.poll(() => secret.first().textContent()).not.toBe(first);

  const operator = await opened(url, headersOf("house", "ops", "read,operator"));
  await operator.go("#/admin/webhooks", "Webhooks that you create appear here.");
  await operator.page.getByLabel("Tenant").fill("acme");
  await operator.page.getByLabel("Tenant").press("Enter");
  await operator.page.getByText("https://example.com/all").waitFor();
});
