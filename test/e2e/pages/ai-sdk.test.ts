// A page with the AI SDK's `useChat`, in Chromium, on another origin than the server.

import { join } from "node:path";
import { describe, expect } from "vitest";
import { openSqliteKeyFile } from "../../../src/engine/stores/sqlite/key-file.ts";
import { createApiKeys, issueApiKey } from "../../../src/server/auth/api-keys.ts";
import { test } from "../../support/chromium.ts";
import { serveWith } from "../../support/process.ts";
import { chatsIn, LOCAL, statusesOn } from "./chats.ts";
import { AND_ON, keepsPromises, SLOW, WORDS } from "./promises.ts";

const { open, openBesideProcess, visit } = await chatsIn("ai-sdk.tsx");

describe("a page with useChat on another origin", () => {
  keepsPromises(test, open, {
    name: "ai-sdk",
    states: {
      called: "input-available",
      asking: "approval-requested",
      done: "output-available",
      denied: "output-denied",
    },
    messages: 2,
  });

  test("shows the whole answer once if it ends while the page reloads", async () => {
    const { server, tab, chat } = await open({ script: SLOW });
    await chat.say("Tell me.");
    await chat.reads("word3");
    await tab.page.route("**/stream", async (route) => {
      await expect.poll(() => statusesOn(server, tab)).toEqual(["success"]);
      await route.continue();
    });
    await tab.page.reload();
    await chat.reads("word59");
    await chat.is("ready");
    await expect.poll(() => chat.all()).toEqual(["Tell me.", WORDS]);
  });

  test("shows an error if the server dies during an answer, and the whole answer once the server is back", async () => {
    const { server, origin, tab, chat } = await openBesideProcess(
      `- { say: "${WORDS} ${AND_ON}", delay_ms: 30 }`,
    );
    await chat.say("Tell me.");
    await chat.reads("word3");
    server.child.kill("SIGKILL");
    await chat.is("error");
    tab.allowErrors("net::ERR_");
    await serveWith(
      { cors: { origins: [origin] } },
      {
        dir: server.dir,
        script: `- { say: "${WORDS}" }`,
        agent: LOCAL,
        env: { PORT: new URL(server.url).port },
      },
    );
    await tab.page.reload();
    await chat.reads("word59");
    await chat.is("ready");
    await expect.poll(() => chat.all()).toEqual(["Tell me.", WORDS]);
  });

  test("works with its user's key, and not without one", async () => {
    const config = { store: "sqlite", auth: { scheme: "api_key" }, backends: { allow_local: true } };
    const { server, origin, tab, chat } = await open({ config });
    await chat.say("Let me in.");
    await expect.poll(() => chat.error()).toContain("Authorization");
    tab.allowErrors("401");
    const { documents, close } = openSqliteKeyFile(join(server.dir, "data"));
    const keys = createApiKeys(documents);
    const ada = await issueApiKey(keys, { tenant: "acme", user: "ada", scopes: ["read", "run"], name: "" });
    close();
    const { chat: again } = await visit(origin, server.url, `&key=${ada.key}`);
    await again.say("Let me in.");
    await again.reads("ok");
  });
});
