import { expect } from "vitest";
import { test } from "../support/chromium.ts";
import { httpServer } from "../support/hostile.ts";
import { startServer } from "../support/server.ts";
import { runs, seen } from "./seen.ts";

test("an answer lists its sources with their titles, and loads nothing from them", async () => {
  const web = await httpServer(({ path }, response) =>
    response
      .writeHead(200, { "content-type": "text/html" })
      .end(path === "/wool" ? "<title>Wool \u202edna</title><p>Of sheep." : "<p>Pressed."),
  );
  const fetchOf = (path: string) => ({ tool: "web_fetch", args: { url: `${web.url}${path}` } });
  const { url } = await startServer({
    script: [
      { say: "Reading.", call: [fetchOf("/wool")] },
      { say: "And more.", call: [fetchOf("/felt")] },
      { call: [fetchOf("/wool")] },
      { say: "Wool is of sheep." },
      { say: "I read nothing more." },
    ],
    agents: "agents: { assistant: { model: 'scripted:test', tools: [web_fetch] } }",
    config: { web: { private: `127.0.0.1:${web.port}` } },
  });
  const tab = await seen(url);
  const { page, go, harm } = tab;
  await go("#/", "New conversation");
  await page.getByLabel("Message", { exact: true }).fill("What is wool?");
  await page.keyboard.press("Enter");
  const answer = page.locator("article.answer", { hasText: "Wool is of sheep." });
  await answer.getByText("2 pages were read").click();
  const links = answer.getByRole("link");
  const host = `127.0.0.1:${web.port}`;
  const listed = [`Wool ⟨U+202E⟩dna ${host}`, `/felt ${host}`];
  await expect.poll(() => links.allInnerTexts()).toEqual(listed);
  await expect.poll(() => links.first().getAttribute("rel")).toBe("noopener noreferrer nofollow");
  await expect.poll(() => page.getByText("pages were read").count()).toBe(1);
  for (const width of [1280, 390]) {
    await tab.look({ theme: width === 390 ? "dark" : "light", width, height: 800 });
    await tab.screenshot(`page-sources-${width}`);
    expect(await tab.barriers()).toEqual([]);
  }

  const thread = (await page.evaluate<string>("location.hash")).split("/")[2] ?? "";
  await runs(url, thread, { input: "And more?" });
  await page.reload();
  await page.getByText("I read nothing more.").waitFor();
  await page.getByText("2 pages were read").click();
  await expect.poll(() => links.allInnerTexts()).toEqual(listed);
  await expect.poll(() => page.getByText(/was read|were read/).count()).toBe(1);
  expect(web.heard.filter(({ path }) => path === "/wool")).toHaveLength(2);
  expect(await harm()).toEqual([]);
});
