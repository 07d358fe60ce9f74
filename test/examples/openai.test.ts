import { expect, test } from "vitest";
import { ask } from "../../examples/openai/main.ts";
import { startServer } from "../support/server.ts";

test("answers OpenAI's SDK, which knows only the address", async () => {
  const { url } = await startServer({ script: [{ say: "You said {{user}}." }] });
  let printed = "";
  await ask(url, { conversation: "c1", text: "hello" }, (text) => {
    printed += text;
  });
  expect(printed).toBe("You said hello.");
});
