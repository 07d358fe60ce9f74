import { expect, test } from "vitest";
import { ask } from "../../examples/a2a/main.ts";
import { startServer } from "../support/server.ts";

test("answers the A2A SDK's own client, which is given only the address", async () => {
  const { url } = await startServer({ script: [{ say: "You said {{user}}." }], config: { wires: ["a2a"] } });
  let printed = "";
  await ask(url, "hello", (text) => {
    printed += text;
  });
  expect(printed).toBe("You said hello.");
});
