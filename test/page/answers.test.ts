// What a person says while the agent waits for them: by the field, by keys, for all calls at once, and across a reload.

import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import type { Turn } from "../../src/agent/models/scripted.ts";
import { type TabOptions, test } from "../support/chromium.ts";
import { gate, gated, WITH_GATE } from "../support/gate.ts";
import { startServer } from "../support/server.ts";
import { json } from "../support/team.ts";
import { seen } from "./seen.ts";

const AGENTS = `
agents:
  assistant:
    model: scripted:test
    backend: { type: local }
    permissions: { mode: default }
    tools: [ask_user]
    interrupts: { expires_after: 4h }
`;
const execute = (command: string) => ({ tool: "execute", args: { command } });
const sees = (page: Page, text: string) => page.getByText(text).filter({ visible: true }).first().waitFor();
const field = (page: Page) => page.getByLabel("Message", { exact: true });
const says = async (page: Page, text: string) => {
  await field(page).fill(text);
  await page.keyboard.press("Enter");
};

async function asked(script: readonly Turn[], options: Pick<TabOptions, "ownContext"> = {}) {
  const { url } = await startServer({ agents: AGENTS, script });
  const { page } = await seen(url, options);
  await says(page, "Go.");
  await page.locator("article.question").first().waitFor();
  return page;
}

describe("while the agent waits", () => {
  test("the field answers the only open question, which its label says", async () => {
    const ask = { tool: "ask_user", args: { question: "Which colour?" } };
    const page = await asked([{ call: [ask] }, { say: "Purple it is." }]);
    await expect.poll(() => field(page).getAttribute("placeholder")).toBe("Answer: Which colour?");
    await says(page, "Purple");
    await sees(page, "Purple it is.");
    await page.locator(".call > summary").getByText("Purple", { exact: true }).waitFor();
    await expect.poll(() => page.getByRole("article", { name: "You" }).count()).toBe(1);
  });

  test("a question counts the last minutes down, and says when it has expired", async () => {
    const page = await asked([{ call: [execute("echo one")] }], { ownContext: true });
    const { items } = await json(`${new URL(page.url()).origin}/interrupts`);
    const [{ expires_at: at }] = items as unknown as [{ expires_at: string }];
    for (const [ms, text] of [
      [-65_000, "Expires in 1:05"],
      [0, "Expired"],
    ] as const) {
      await page.clock.setFixedTime(Date.parse(at) + ms);
      await page.reload();
      await sees(page, text);
    }
  });

  test("a message asks first what to do with the calls, and withdrawing them is not a failure", async () => {
    const page = await asked([
      { call: [execute("echo one"), execute("echo two")] },
      { say: "Something else then." },
    ]);
    await says(page, "Never mind.");
    const dialog = page.getByRole("dialog", { name: "2 questions are open" });
    await dialog.getByRole("button", { name: "Answer first" }).click();
    await expect.poll(() => field(page).inputValue()).toBe("Never mind.");
    await field(page).press("Enter");
    await dialog.getByRole("button", { name: "Withdraw the questions and send" }).click();
    await sees(page, "Something else then.");
    await expect.poll(() => page.locator(".tool.failed").count()).toBe(0);
    await page.reload();
    await sees(page, "Something else then.");
    await expect.poll(() => page.locator(".tool.failed").count()).toBe(0);
  });

  test("given answers survive a reload, and the others can be allowed together", async () => {
    const page = await asked([
      { call: [execute("echo one"), execute("echo two"), execute("echo three")] },
      { say: "All of it." },
    ]);
    const log = page.getByRole("region", { name: "Messages" });
    await log.getByRole("button", { name: "Deny", exact: true }).first().click();
    await sees(page, "1 of 3 answered.");
    await page.reload();
    await sees(page, "1 of 3 answered.");
    await log.getByRole("button", { name: "Allow all 2" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("echo three").waitFor();
    await dialog.getByRole("button", { name: "Allow all 2" }).click();
    await sees(page, "All of it.");
    // The page forgets them when the server has answered, which may be after the run has ended.
    await expect
      .poll(() => page.evaluate(`Object.keys(localStorage).filter((key) => key.includes("given"))`))
      .toEqual([]);
  });

  test("an answer is remembered only as broadly as the page announces", async () => {
    const page = await asked([
      { call: [execute("echo 1")] },
      { call: [execute("echo 2")] },
      { call: [execute("echo 3; touch x")] },
      { say: "Done with it." },
    ]);
    const question = page.locator("article.question");
    await question.getByLabel("Remember").selectOption("in this conversation");
    await question
      .getByText("If you allow it, execute can run again with exactly these arguments.")
      .waitFor();
    await question
      .getByRole("combobox", { name: "For", exact: true })
      .selectOption("commands that begin with “echo”");
    await question.getByText("whose commands all begin with “echo” can run.").waitFor();
    await page.setViewportSize({ width: 390, height: 844 });
    await expect.poll(() => page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    // For thumbs: high enough, and each as wide as the others.
    const buttons = async () => {
      const sizes = await page.evaluate<[number, number][]>(`
        [...document.querySelectorAll("article.question .actions > button")].map((each) => {
          const { width, height } = each.getBoundingClientRect();
          return [Math.round(width), height];
        })`);
      return {
        widths: new Set(sizes.map(([width]) => width)).size,
        areHigh: sizes.every(([, height]) => height >= 44),
      };
    };
    await expect.poll(buttons).toEqual({ widths: 1, areHigh: true });
    await question.getByRole("button", { name: "Allow", exact: true }).click();
    await question.getByText("echo 3; touch x").waitFor();
    await question.getByLabel("Remember").selectOption("with this agent");
    await expect
      .poll(() => question.getByLabel(/^For/).locator("option").allTextContents())
      .toEqual(["exactly this call", "commands that begin with “echo” or “touch”", "every call to execute"]);
    await question.getByRole("button", { name: "Deny", exact: true }).click();
    await sees(page, "Done with it.");
    await page.evaluate(`location.hash = "#/agents/assistant"`);
    const rule = await page.locator(".rule").innerText();
    expect(rule.match(/echo 3; touch x/g)).toHaveLength(1);
  });

  test("a denied call is marked with the reason, even after a reload", async () => {
    const page = await asked([{ call: [execute("echo one")] }, { say: "Then not." }]);
    await page.getByRole("button", { name: "Deny, because…" }).click();
    await page.getByLabel("Why not? The agent will see your reason.").fill("Too early.");
    await page.keyboard.press("Enter");
    await sees(page, "Then not.");
    for (const isAgain of [false, true]) {
      if (isAgain) await page.reload();
      const card = page.locator(".card.denied");
      await card.getByText("denied").waitFor();
      await card.getByText("Too early.").waitFor();
      await expect.poll(() => card.getByText(/failed|Error/).count()).toBe(0);
    }
  });

  test("a click counts while the page moves under it, and typed text is kept while events arrive", async () => {
    const script = [{ call: [execute("echo one")] }, { say: "Then not." }];
    const { url } = await startServer({ agents: AGENTS, script });
    const { page } = await seen(url);
    await says(page, "Go.");
    const because = page.getByRole("button", { name: "Deny, because…" });
    await because.waitFor();
    const thread = new URL(page.url()).hash.split("/")[2];
    const rename = (title: string) =>
      fetch(`${url}/threads/${thread}`, {
        method: "PATCH",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ title }),
      });
    const press = async (right: number, down: number) => {
      // Once it stays where it is.
      await because.hover();
      const { x, y, width, height } = (await because.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
      await page.mouse.move(x + width / 2, y + height / 2);
      await page.mouse.down();
      await page.evaluate(`document.querySelector(".questions").style.translate = "0 -120px"`);
      await page.mouse.move(x + width / 2 + right, y + height / 2 + down);
      await page.mouse.up();
      await page.evaluate(`document.querySelector(".questions").style.translate = ""`);
    };
    await press(0, 60);
    await expect.poll(() => because.count()).toBe(1);
    await press(1, 0);
    const words = page.getByLabel("Why not? The agent will see your reason.");
    await words.waitFor();
    for (const [at, letter] of [..."Too early."].entries()) {
      await rename(`Title ${at}`);
      await page.keyboard.type(letter);
    }
    await page.getByRole("heading", { name: "Title 9" }).waitFor();
    await expect.poll(() => words.inputValue()).toBe("Too early.");
    await page.keyboard.press("Enter");
    await sees(page, "Then not.");
  });

  test("a question without an answer, and a call that a rule refuses, do not appear as failed", async () => {
    const agents = AGENTS.replace("mode: default", "rules: [{ deny: execute, regex: 'rm' }]");
    const ask = { tool: "ask_user", args: { question: "Which colour?" } };
    const script = [{ call: [ask, execute("rm all")] }, { say: "Then not." }];
    const { page } = await seen((await startServer({ agents, script })).url);
    await says(page, "Go.");
    await page.getByRole("button", { name: "Don't answer" }).click();
    await sees(page, "Then not.");
    for (const isAgain of [false, true]) {
      if (isAgain) await page.reload();
      await page.locator(".card.denied").getByText("not answered").waitFor();
      await page.locator(".card.denied").getByText("denied", { exact: true }).waitFor();
      await expect.poll(() => page.locator(".card.failed, .card.done").count()).toBe(0);
    }
  });

  test("the keyboard focus moves from one question to the next, and then to the field", async () => {
    const calls = ["one", "two"].map((word) => execute(`echo ${word}`));
    const page = await asked([{ call: calls }, { say: "Both were run." }]);
    const focused = () =>
      page.locator("article:focus-within, .composer:focus-within").first().getAttribute("class");
    await expect.poll(() => page.locator("article.question").count()).toBe(2);
    for (const left of [1, 0]) {
      const allow = page
        .locator("article.question")
        .first()
        .getByRole("button", { name: "Allow", exact: true });
      // It can be pressed once its question was in sight.
      await expect.poll(() => allow.isEnabled()).toBe(true);
      await allow.focus();
      await page.keyboard.press("Enter");
      await expect.poll(() => page.locator("article.question").count()).toBe(left);
      await expect.poll(focused).toMatch(left > 0 ? /question/ : /composer/);
    }
    await sees(page, "Both were run.");
  });

  test("a message that is being edited is still so after a reload, with the text so far", async () => {
    const { url } = await startServer({
      agents: AGENTS,
      script: [{ say: "Hello." }, { say: "Hello again." }],
    });
    const { page } = await seen(url);
    await says(page, "Hi.");
    await sees(page, "Hello.");
    // While the run is active, the key does nothing.
    await page.getByPlaceholder("Reply…").waitFor();
    await field(page).blur();
    await page.keyboard.press("e");
    await expect.poll(() => field(page).inputValue()).toBe("Hi.");
    await field(page).fill("Hi, dear");
    await page.reload();
    await sees(page, "Hello.");
    await expect.poll(() => field(page).inputValue()).toBe("Hi, dear");
    await page.keyboard.press("Enter");
    await sees(page, "Hello again.");
    await expect
      .poll(() => page.getByRole("article", { name: "You" }).allInnerTexts())
      .toEqual([expect.stringContaining("Hi, dear")]);
    await page.reload();
    await sees(page, "Hello again.");
    await expect.poll(() => field(page).inputValue()).toBe("");
  });

  test("a key answers the only open call from anywhere, once it was visible", async () => {
    const page = await asked([{ call: [execute("echo one")] }, { say: "It ran." }]);
    await page
      .locator("article.question button:enabled", { hasText: /^Allow$/ })
      .first()
      .waitFor();
    await page.locator("h1").first().click();
    await page.keyboard.press("a");
    await sees(page, "It ran.");
  });
});

test("Escape stops after the step only if nothing else uses it, and a hint on the page mentions it", async () => {
  const { tool, entered, open } = gate();
  const { url } = await startServer({ agents: WITH_GATE, tools: [tool], script: gated });
  const { page } = await seen(url);
  await says(page, "Begin.");
  await entered;
  await sees(page, "Running gate");
  await field(page).fill("Half a thought");
  await page.keyboard.press("Escape");
  await page.getByRole("searchbox").first().press("Escape");
  await field(page).fill("");
  await sees(page, "Running gate");
  // The server answers when the step has ended, or a few seconds later.
  const answered = Promise.withResolvers<void>();
  await page.route("**/cancel", async (route) => {
    await answered.promise;
    await route.continue();
  });
  await field(page).press("Escape");
  await sees(page, "Stopping after this step");
  answered.resolve();
  await page.getByRole("button", { name: "Stop now" }).click();
  await page.locator(".status-line [role=status]").getByText("Stopped", { exact: true }).waitFor();
  open();
});
