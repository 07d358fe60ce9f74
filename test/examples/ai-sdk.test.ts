import { expect, test } from "vitest";
import { ask } from "../../examples/ai-sdk/main.ts";
import { startServer } from "../support/server.ts";

test("answers an unmodified client, which is given only the address", async () => {
  const { url } = await startServer({ script: [{ say: "You said {{user}}." }] });
  const { parts } = await ask(url, "chat1", "hello");
  expect(parts).toContainEqual(expect.objectContaining({ type: "text", text: "You said hello." }));
});
