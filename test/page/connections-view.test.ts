import { randomBytes } from "node:crypto";
import { describe, expect } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { authorizationServer } from "../support/authorization-server.ts";
import { test } from "../support/chromium.ts";
import { connectAt, oauthMcpServer } from "../support/connecting.ts";
import { startServer } from "../support/server.ts";
import { seen } from "./seen.ts";

const vault = () => ({ key: randomBytes(32).toString("base64") });

describe("connections on the page", () => {
  test("a token can be stored, listed without its text, replaced only after a second click, and disconnected after a question", async () => {
    const { url } = await startServer({ config: { vault: vault() } });
    const { page, go } = await seen(url);
    await go("#/tools/connections", "Accounts that you connect appear here.");
    const section = page.getByRole("region", { name: "Connections" });
    const store = async (token: string) => {
      await section.getByRole("button", { name: "Add a token" }).click();
      await section.getByLabel("Name id").fill("calendar");
      await section.getByLabel("Address").fill("https://mcp.example.com/mcp");
      const field = section.getByLabel("Token token");
      await expect.poll(() => field.getAttribute("type")).toBe("password");
      await field.fill(token);
      await section.getByRole("button", { name: "Store" }).click();
    };
    await store("t0k3n");
    await section.getByRole("status").filter({ hasText: "calendar is stored." }).waitFor();
    await section.locator("summary", { hasText: "calendar" }).click();
    await section.getByText("https://mcp.example.com/mcp").waitFor();
    const content = await page.content();
    expect(content).not.toContain("t0k3n");

    const { connections } = createClient({ baseUrl: url });
    const before = (await connections.get("calendar")).updated_at;
    await store("0th3r");
    await section.getByText("calendar already exists. Store it again to replace it.").waitFor();
    expect((await connections.get("calendar")).updated_at).toBe(before);
    await section.getByRole("button", { name: "Store" }).click();
    await expect.poll(async () => (await connections.get("calendar")).updated_at).not.toBe(before);

    await section.getByRole("button", { name: "Disconnect calendar" }).click();
    await section.getByText("Agents can no longer use it").waitFor();
    await section.getByRole("button", { name: "Disconnect", exact: true }).click();
    await section.getByText("Accounts that you connect appear here.").waitFor();
    await section.getByRole("status").filter({ hasText: "may still work elsewhere" }).waitFor();
    expect((await connections.list()).items).toEqual([]);
  });

  test("a variable for sandboxes can be stored for the hosts that receive it", async () => {
    const { url } = await startServer({ config: { vault: vault() } });
    const { page, go } = await seen(url);
    await go("#/tools/connections", "Accounts that you connect appear here.");
    const section = page.getByRole("region", { name: "Connections" });
    await section.getByRole("button", { name: "Add a token" }).click();
    await section.getByLabel("Kind").selectOption("Variable for sandboxes");
    await section.getByLabel("Name id").fill("deploy");
    await section.getByLabel("Variable secret_name").fill("DEPLOY_KEY");
    await section.getByLabel("Value").fill("a b");
    await section.getByLabel("Hosts").fill("api.example.com\n*.example.org");
    await section.getByRole("button", { name: "Store" }).click();
    await section.getByText("deploy is stored.").waitFor();
    const { connections } = createClient({ baseUrl: url });
    expect(await connections.get("deploy")).toMatchObject({
      ...{ type: "environment_variable", secret_name: "DEPLOY_KEY" },
      networking: { type: "limited", allowed_hosts: ["api.example.com", "*.example.org"] },
    });
  });

  test("an admin stores a token for the tenant, which is not the admin's own", async () => {
    const { url } = await startServer({ config: { vault: vault() } });
    const { page, go } = await seen(url);
    await go("#/admin/connections", "on behalf of all");
    const section = page.getByRole("region", { name: "Connections" });
    await section.getByRole("button", { name: "Add a token" }).click();
    await section.getByLabel("Name id").fill("search");
    await section.getByLabel("Address").fill("https://search.example.com/mcp");
    await section.getByLabel("Token token").fill("t0k3n");
    await section.getByRole("button", { name: "Store" }).click();
    await section.getByText("search is stored.").waitFor();
    const { admin, connections } = createClient({ baseUrl: url });
    expect((await admin.connections.list()).items.map(({ id }) => id)).toEqual(["search"]);
    expect((await connections.list()).items).toEqual([]);
  });

  test("a question about an account leads to the connections", async () => {
    const { url } = await startServer({
      agents: `
mcp_servers:
  calendar: { url: "https://mcp.example.com/mcp", per: user }
agents:
  assistant: { model: "scripted:test", tools: ["mcp__calendar__*"], permissions: { mode: bypass } }
`,
      config: { vault: vault() },
      script: [
        { say: "Your account, please.", call: [{ tool: "mcp__calendar__connect", args: {} }] },
        { say: "Fine." },
      ],
    });
    const client = createClient({ baseUrl: url });
    for await (const _ of client.run("t", { input: "When am I free?" }));
    const { page, go } = await seen(url);
    await go("#/t/t", "Connect your account at `calendar`");
    await page.getByRole("link", { name: "Connections" }).first().click();
    await page.getByText("Accounts that you connect appear here.").waitFor();
    await page.goBack();
    await page.getByRole("button", { name: "Deny" }).first().click();
    await page.getByLabel("Messages").getByText("Fine.").waitFor();
  });

  test("an account is connected in another tab, from the list and from a run's question, and the run continues", async () => {
    const calendar = await oauthMcpServer(await authorizationServer());
    const { url } = await startServer({
      agents: `
mcp_servers:
  calendar: { url: "${calendar.url}", per: user, auth: { oauth: {} }, trust_annotations: true }
  mail: { url: "https://mcp.example.com/${"long".repeat(20)}", per: user, auth: { oauth: {} } }
agents:
  assistant: { model: "scripted:test", tools: ["mcp__calendar__*"], permissions: { mode: bypass } }
`,
      config: { vault: vault(), http_tools: { allow: "127.0.0.1" } },
      script: [{ call: [{ tool: "mcp__calendar__connect", args: {} }] }, { say: "Fine." }],
    });
    const client = createClient({ baseUrl: url });
    const tab = await seen(url);
    const { page, go } = tab;
    await go("#/tools/connections", "Accounts that you connect appear here.");
    const section = page.getByRole("region", { name: "Connections" });
    await section.getByText(calendar.url).waitFor();
    await section.getByRole("button", { name: "Connect: calendar" }).click();
    const link = section.getByRole("link", { name: "Open the sign-in in a new tab" });
    await expect.poll(() => link.getAttribute("rel")).toBe("noopener noreferrer");
    await tab.screenshot("page-connections-sign-in");
    const usual = page.viewportSize() ?? { width: 1280, height: 720 };
    await page.setViewportSize({ width: 390, height: 844 });
    const beyond = `(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector("section[aria-label=Connections]"))`;
    await expect.poll(() => page.evaluate(beyond)).toBe(0);
    await page.setViewportSize(usual);
    expect(await tab.barriers()).toEqual([]);
    await connectAt((await link.getAttribute("href")) ?? "");
    await section.getByRole("status").filter({ hasText: "calendar is connected." }).waitFor();
    await section.locator("summary", { hasText: "calendar connected" }).waitFor();
    await expect.poll(() => section.getByRole("button", { name: "Connect: calendar" }).count()).toBe(0);

    await client.connections.delete("calendar");
    for await (const _ of client.run("t", { input: "When am I free?" }));
    await go("#/t/t", "continues by itself");
    const asked = page.getByRole("link", { name: "Sign in" }).first();
    await connectAt((await asked.getAttribute("href")) ?? "");
    await page.getByLabel("Messages").getByText("Fine.").waitFor();
  });
});
