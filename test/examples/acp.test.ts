import { expect, test } from "vitest";
import { ask } from "../../examples/acp/main.ts";
import { startServer } from "../support/server.ts";

test("speaks with an agent as an editor does", async () => {
  const { url } = await startServer({ script: [{ say: "You said {{user}}." }] });
  expect(await ask(url, "hello")).toBe("You said hello.");
});

test("reads what the agent fails with", async () => {
  const fail = { code: "model_rejected", message: "The provider said no." };
  const { url } = await startServer({ script: [{ fail }] });
  await expect(ask(url, "hello")).rejects.toThrow("The provider said no.");
});
