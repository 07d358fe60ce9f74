import { expect, test } from "vitest";
import { ask } from "../../examples/acp/main.ts";
import { startServer } from "../support/server.ts";

test("talks to an agent as an editor does", async () => {
  const { url } = await startServer({ script: [{ say: "You said {{user}}." }] });
  expect(await ask(url, "hello")).toBe("You said hello.");
});

test("shows the agent's error", async () => {
  const fail = { code: "model_rejected", message: "The provider said no." };
  const { url } = await startServer({ script: [{ fail }] });
  await expect(ask(url, "hello")).rejects.toThrow("The provider said no.");
});
