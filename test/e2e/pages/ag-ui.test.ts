// A page with AG-UI's `HttpAgent`, in Chromium, on another origin than the server.

import { describe } from "vitest";
import { test } from "../../support/chromium.ts";
import { chatsIn } from "./chats.ts";
import { keepsPromises } from "./promises.ts";

const { open } = await chatsIn("ag-ui.tsx");

describe("a page with HttpAgent on another origin", () => {
  keepsPromises(test, open, {
    name: "ag-ui",
    states: { called: "called", asking: "called", done: "done", denied: "done" },
    messages: 3,
  });
});
