// The demo, as a person meets it who has started the server and points a stock page at it.

import { expect } from "vitest";
import { test } from "../../support/chromium.ts";
import { serving, skein } from "../../support/process.ts";
import { temporaryFolder } from "../../support/server.ts";
import { chatsIn } from "./chats.ts";

const { serve, visit } = await chatsIn("ai-sdk.tsx");

test("a page with useChat shows the output of `npm start`: the demo's text, its tools and their results", async () => {
  const origin = await serve();
  const env = { PORT: "0", DATA_DIR: await temporaryFolder(), CORS_ORIGINS: origin };
  const { url } = await serving(skein(["serve"], env));
  const { tab, chat } = await visit(origin, url);
  await chat.say("Hello from a page.");
  await chat.reads("You wrote: “Hello from a page.”");
  await chat.reads("This was the scripted demo");
  await chat.is("ready");
  await chat.reads("their sum is 385");
  const called = ["write_todos", "write_file", "read_file", "ls", "execute", "write_todos"];
  await expect
    .poll(() => tab.page.getByRole("heading").allInnerTexts())
    .toEqual(called.map((name) => `${name}: output-available`));
  await tab.screenshot("ai-sdk-demo");
});
