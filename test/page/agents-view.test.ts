import { describe, expect } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/agent/core/tool.ts";
import { test } from "../support/chromium.ts";
import { httpServer } from "../support/hostile.ts";
import { startServer } from "../support/server.ts";
import { json } from "../support/team.ts";
import { seen } from "./seen.ts";

async function opened(hash: string, text: string) {
  const { url } = await startServer();
  const tab = await seen(url);
  await tab.go(hash, text);
  const { page } = tab;
  return {
    ...tab,
    url,
    button: (name: string) => page.getByRole("button", { name, exact: true }),
    field: (name: string) => page.getByRole("textbox", { name, exact: true }),
  };
}

describe("an agent on the page", () => {
  test("accepts a user's options of a hook, and shows errors at the field", async () => {
    const { page, url, field, allowErrors } = await opened("#/agents/assistant", "Your changes");
    const saved = async () => (await json(`${url}/agents/assistant/overrides`)).hooks;
    await page.locator("summary", { hasText: "summarization" }).click();
    const form = page.locator("details[open]");
    await form.getByText("On", { exact: true }).click();
    await field("trigger").fill("7");
    await form.getByRole("button", { name: "Save" }).click();
    await form.getByRole("alert").filter({ hasText: "must be at most 1" }).waitFor();
    await expect.poll(() => field("trigger").getAttribute("aria-invalid")).toBe("true");
    allowErrors("400");

    await field("trigger").fill("0.5");
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByText("changed by you").waitFor();
    expect(await saved()).toEqual({ summarization: { trigger: 0.5 } });

    await field("trigger").fill("");
    await field("keep").fill("0.2");
    await form.getByRole("button", { name: "Save" }).click();
    await expect.poll(saved).toEqual({ summarization: { keep: 0.2 } });

    await page.getByRole("button", { name: "Reset all" }).click();
    await page.getByRole("button", { name: "Reset", exact: true }).click();
    await page.getByText("changed by you").waitFor({ state: "detached" });
    expect(await saved()).toBeUndefined();
  });

  test("is shown with the tools of its runs", async () => {
    const { page } = await opened("#/agents/assistant", "Your changes");
    await page.getByText("write_file", { exact: true }).waitFor();
    await page.locator("summary", { hasText: "filesystem" }).click();
    await page.locator("details[open]").getByText("Off", { exact: true }).click();
    await page.locator("details[open]").getByRole("button", { name: "Save" }).click();
    await page.getByText("write_file", { exact: true }).waitFor({ state: "detached" });
  });
});

const CAREFUL = `agents:
  default: { model: "scripted:test" }
  writer:
    model: "scripted:test"
    tools: [wordy]
    system_prompt:
      - { id: rules, text: "Never say <script>window.pwned = 1</script>." }
      - { id: style, text: Be brief. }
`;

describe("an agent can be read and tried", () => {
  test("its prompt, its tools with their effects and parameters, and a conversation are available by keyboard and on a phone", async () => {
    const [first, rest] = ["x".repeat(120), "y. And more."];
    const wordy = defineTool({
      name: "wordy",
      description: first + rest,
      parameters: z.object({}),
      execute: async () => "",
    });
    const { url } = await startServer({ agents: CAREFUL, tools: [wordy] });
    const tab = await seen(url);
    const { page } = tab;
    await tab.go("#/agents/writer", "System prompt");
    for (const width of [1280, 390]) {
      await tab.look({ theme: width === 390 ? "dark" : "light", width, height: 800 });
      await tab.screenshot(`page-agent-${width}`);
      expect(await tab.barriers()).toEqual([]);
    }
    await page.locator("summary", { hasText: "rules" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("Never say <script>window.pwned = 1</script>.").waitFor();
    await page.locator("summary", { hasText: "write_todos" }).first().click();
    await page.getByText('"todos"').waitFor();
    await expect
      .poll(() => page.locator("details[open] pre").last().innerText())
      .toContain('\n  "properties": {\n    "');
    const tool = page.locator("details", { hasText: "wordy" });
    await expect.poll(() => tool.locator("summary").innerText()).toBe(`wordy ${first}…`);
    await expect.poll(() => tool.locator("pre").first().textContent()).toBe(first + rest);
    expect(await tab.harm()).toEqual([]);

    await page.getByRole("button", { name: "Start a conversation" }).press("Enter");
    const field = page.getByRole("textbox", { name: "Message" });
    await field.fill("Hello");
    await field.press("Enter");
    const agents = async () =>
      ((await json(`${url}/runs`)).items as unknown as { agent: string }[]).map(({ agent }) => agent);
    await expect.poll(agents).toEqual(["writer"]);
  });
});

describe("tools and permissions on the page", () => {
  test("a tool is registered, its secret shown once, and deleted", async () => {
    const { page, url, button, field, allowErrors } = await opened("#/tools", "Registered tools");
    await button("+ Register a tool").click();
    await field("name (required)").fill("no name!");
    await field("description (required)").fill("Finds an order");
    await field("callback_url (required)").fill("https://example.com/orders");
    await button("Register").click();
    await page.locator('[aria-invalid="true"]').waitFor();
    allowErrors("400");
    await field("name (required)").fill("find_order");
    await field("headers").fill("x-key: secret");
    await button("Register").click();
    await page
      .getByRole("dialog")
      .getByText(/^whsec_/)
      .waitFor();
    await button("Close").click();
    const { items } = await json(`${url}/tools`);
    expect(items).toMatchObject([{ name: "find_order", header_names: ["x-key"] }]);
    await page.locator("summary", { hasText: "find_order" }).click();
    await button("Delete").click();
    await page.getByRole("group").getByRole("button", { name: "Delete" }).click();
    await page.locator("summary", { hasText: "find_order" }).waitFor({ state: "detached" });
  });

  test("a tool can be tried with arguments and changed, and keeps its secret and the values outside of the form", async () => {
    const heard: { args: unknown; key: unknown; path: unknown }[] = [];
    const endpoint = await httpServer(({ body, headers, path }, response) => {
      heard.push({ args: JSON.parse(body).args, key: headers["x-key"], path });
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(heard.length > 1 ? { error: "sold out" } : { result: "<b>3 left</b>" }));
    });
    const { url } = await startServer({ config: { http_tools: { allow: new URL(endpoint.url).host } } });
    const registered = await json(`${url}/tools`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        ...{ name: "find_order", description: "Finds an order.", headers: { "x-key": "secret" } },
        parameters: {
          type: "object",
          properties: { id: { type: "integer", title: "Number of the order" } },
          required: ["id"],
        },
        callback_url: new URL("/orders?token=hidden", endpoint.url).href,
      }),
    });
    expect(registered.secret).toMatch(/^whsec_/);
    const tab = await seen(url);
    const { page } = tab;
    await tab.go("#/tools", "find_order");
    await page.locator("summary", { hasText: "find_order" }).focus();
    await page.keyboard.press("Enter");
    const trial = page.getByRole("region", { name: "Try find_order" });
    await trial.getByLabel("Number of the order id (required)").fill("7");
    await trial.getByRole("button", { name: "Call it" }).press("Enter");
    await trial.getByText("<b>3 left</b>").waitFor();
    for (const width of [1280, 390]) {
      await tab.look({ theme: width === 390 ? "dark" : "light", width, height: 900 });
      await tab.screenshot(`page-tool-${width}`);
      expect(await tab.barriers()).toEqual([]);
    }
    await page.getByRole("button", { name: "Change it" }).press("Enter");
    await page.getByRole("textbox", { name: "description (required)" }).fill("Finds an order by its number.");
    await page.getByRole("button", { name: "Save" }).press("Enter");
    await page.locator("summary", { hasText: "by its number" }).waitFor();
    await trial.getByLabel("Number of the order id (required)").fill("8");
    await trial.getByRole("button", { name: "Call it" }).press("Enter");
    await trial.getByText("sold out").waitFor();
    expect(heard).toEqual([
      { args: { id: 7 }, key: "secret", path: "/orders?token=hidden" },
      { args: { id: 8 }, key: "secret", path: "/orders?token=hidden" },
    ]);
    expect(await tab.harm()).toEqual([]);
  });

  test("a permission rule is added for an agent, and removed", async () => {
    const { page, url, button, field } = await opened("#/tools", "Registered tools");
    const rules = async () => (await json(`${url}/agents/assistant/permissions`)).items;
    await button("+ Add a rule").click();
    await field("tool (required)").fill("execute");
    await field("command_prefix").fill("npm test\ngit status");
    await button("Add for assistant").click();
    await page.getByText("npm test, git status").waitFor();
    expect(await rules()).toMatchObject([
      { decision: "allow", matcher: { tool: "execute", command_prefix: ["npm test", "git status"] } },
    ]);
    await page.getByRole("button", { name: /^Remove the rule/ }).click();
    await button("Remove").click();
    await page.getByText("npm test, git status").waitFor({ state: "detached" });
    expect(await rules()).toEqual([]);
  });
});
