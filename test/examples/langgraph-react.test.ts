import { expect, test } from "vitest";
import { ask } from "../../examples/langgraph-react/main.ts";
import { startServer } from "../support/server.ts";

test("answers over LangGraph's streaming protocol", async () => {
  const { url } = await startServer({ script: [{ say: "You said {{user}}." }] });
  let printed = "";
  const print = (text: string) => {
    printed += text;
  };
  await ask(url, { threadId: "c1", text: "hello" }, print);
  expect(printed).toBe("You said hello.");
});
