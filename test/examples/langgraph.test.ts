import { expect, test } from "vitest";
import { ask } from "../../examples/langgraph/main.ts";
import { startServer } from "../support/server.ts";

test("answers LangGraph's SDK, which is given only the address", async () => {
  const { url } = await startServer({ script: [{ say: "You said {{user}}." }] });
  let printed = "";
  await ask(url, "hello", (text) => {
    printed += text;
  });
  expect(printed).toBe("You said hello.");
});
