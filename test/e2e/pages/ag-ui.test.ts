// A page with AG-UI's `HttpAgent`, in Chromium, on another origin than the server.

import { afterAll, describe } from "vitest";
import { startChromium } from "../../support/chromium.ts";
import { needing } from "../../support/needing.ts";
import { chatsIn } from "./chats.ts";
import { keepsPromises } from "./promises.ts";

const chromium = await startChromium();
afterAll(() => chromium?.close());
const { test } = needing(chromium, "Chromium");
const { open } = await chatsIn(chromium, "ag-ui.tsx");

describe("a page with HttpAgent on another origin", () => {
  keepsPromises(test, open, {
    name: "ag-ui",
    states: { called: "called", asking: "called", done: "done", denied: "done" },
    messages: 3,
  });
});
