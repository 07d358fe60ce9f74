// What a conversation on the page survives: reloads, a server that dies, replicas, many tabs, little permission.

import type { Page } from "playwright-core";
import { afterAll, describe, expect } from "vitest";
import { test } from "../support/chromium.ts";
import { onReplicas } from "../support/deployments.ts";
import { freePort } from "../support/free-port.ts";
import { heldAfter } from "../support/gate.ts";
import { needing } from "../support/needing.ts";
import { serveWith, skein } from "../support/process.ts";
import { startServer, temporaryFolder } from "../support/server.ts";
import { sharedRedis } from "../support/shared-stores.ts";
import { json } from "../support/team.ts";
import { seen } from "./seen.ts";

const redis = await sharedRedis();
afterAll(() => redis?.close());

const WORDS = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");
const SLOWLY = { say: WORDS, delay_ms: 40 };
/** Minutes more than a test takes. */
const AND_ON = "and on ".repeat(3_000).trim();

const sees = (page: Page, text: string | RegExp) =>
  page.getByText(text).filter({ visible: true }).first().waitFor();
const says = async (page: Page, text: string) => {
  await page.getByLabel("Message", { exact: true }).fill(text);
  await page.keyboard.press("Enter");
};
const answers = (page: Page) => page.getByRole("article", { name: "assistant" }).getByRole("paragraph");

/** What the page shows is what was said, each word once. */
const showsAll = (page: Page) =>
  expect.poll(async () => (await answers(page).allInnerTexts()).map((text) => text.trim())).toEqual([WORDS]);

describe("an answer in progress", () => {
  test("continues after a reload, with each word once", async () => {
    const { model, release } = heldAfter("word9", [SLOWLY]);
    const { url } = await startServer({ model });
    const { page } = await seen(url);
    await says(page, "Tell me.");
    await sees(page, /word3/);
    await page.reload();
    release();
    await showsAll(page);
  });

  test("starts over, once, if the server is killed and restarted", async () => {
    const begun = JSON.stringify([{ ...SLOWLY, say: `${WORDS} ${AND_ON}` }]);
    const env = { PORT: String(await freePort()) };
    const server = await serveWith({ store: "sqlite" }, { script: begun, env });
    const { page, allowErrors } = await seen(server.url);
    await says(page, "Tell me.");
    await sees(page, /word3/);
    server.child.kill("SIGKILL");
    await sees(page, "Reconnecting");
    const script = JSON.stringify([SLOWLY]);
    const again = { dir: server.dir, script, env };
    await serveWith({ store: "sqlite" }, again);
    await showsAll(page);
    await sees(page, "Done");
    // The server that was started last is stopped first.
    await page.close();
    allowErrors("net::ERR_");
  });

  test("is shown in eight tabs at once, one of which is visible", async () => {
    const { url } = await startServer({ script: [SLOWLY, { say: "And the next one." }] });
    const { page } = await seen(url);
    await says(page, "Tell me.");
    await sees(page, /word3/);
    const tabs = [page];
    for (let count = 1; count < 8; count++) {
      await setVisibility(tabs.at(-1) ?? page, "hidden");
      const tab = await page.context().newPage();
      await tab.goto(page.url());
      await sees(tab, /word3/);
      tabs.push(tab);
    }
    const last = tabs.at(-1) ?? page;
    await showsAll(last);
    await says(last, "And?");
    await sees(last, "And the next one.");
    await setVisibility(last, "hidden");
    await setVisibility(page, "visible");
    await sees(page, "And the next one.");
  });
});

/** As if a person went to another tab, or came back: Chromium without a screen shows all of them. */
const setVisibility = (page: Page, state: "hidden" | "visible") =>
  page.evaluate(`
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => "${state}" });
    Object.defineProperty(document, "hidden", { configurable: true, get: () => ${state === "hidden"} });
    document.dispatchEvent(new Event("visibilitychange"));
  `);

needing(redis, "redis-server").test(
  "an answer over two replicas has each word once, even if its stream breaks",
  async () => {
    if (!redis) throw new Error("The test has not asked for Redis.");
    const { model, release } = heldAfter("word9", [SLOWLY]);
    const deployment = await onReplicas(redis)({ model });
    const { page, allowErrors } = await seen(deployment.url);
    deployment.cut("reset", { number: 2, bytes: 1500 });
    await says(page, "Tell me.");
    // The page follows the answer now, and more bytes are left than the cut lets pass.
    await sees(page, /word3/);
    release();
    await showsAll(page);
    expect(deployment.cuts()).toBeGreaterThan(0);
    allowErrors("net::ERR_");
  },
);

test("a person with only the scope `read` finds no control that writes", async () => {
  const dir = await temporaryFolder();
  const config = { store: "sqlite", auth: { scheme: "api_key" }, backends: { allow_local: true } };
  const server = await serveWith(config, { dir, script: JSON.stringify([{ say: "Read me." }]) });
  const key = async (...scopes: string[]) => {
    const made = skein(
      ["keys", "create", "--tenant", "acme", "--user", "ada", "--scopes", scopes.join(",")],
      {
        DATA_DIR: `${dir}/data`,
      },
    );
    expect(await made.exited).toBe(0);
    return /\bsk_\S+/.exec(made.output())?.[0] ?? "";
  };
  const [writer, reader] = [await key("read", "run"), await key("read")];
  await json(`${server.url}/threads/t1/runs`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json",
      authorization: `Bearer ${writer}`,
    },
    body: JSON.stringify({ input: "Go." }),
  });
  const { page, allowErrors, go } = await seen(server.url);
  await page.getByLabel("API key").fill(reader);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Skein" }).waitFor();
  await page.getByRole("heading", { name: "Read-only access" }).waitFor();
  await page.getByRole("list", { name: "Recent conversations" }).getByRole("link").waitFor();
  const places = `document.querySelector("nav .places").getBoundingClientRect().top`;
  await expect.poll(() => page.evaluate(places)).toBeGreaterThan(500);
  await go("#/t/t1", "Read me.");
  for (const name of ["Send", "Rewrite", "Retry", "Fork", "Delete"])
    await expect.poll(() => page.getByRole("button", { name }).count(), { message: name }).toBe(0);
  await expect.poll(() => page.getByRole("link", { name: "New conversation" }).count()).toBe(0);
  await expect.poll(() => page.getByLabel("Message", { exact: true }).count()).toBe(0);
  allowErrors("401");
});
