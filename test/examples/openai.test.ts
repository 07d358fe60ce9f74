import { expect, onTestFinished, test } from "vitest";
import { ask } from "../../examples/openai/main.ts";
import { ask as askInBackground } from "../../examples/openai-responses/main.ts";
import { cuttingProxy } from "../support/cutting-proxy.ts";
import { heldAfter } from "../support/gate.ts";
import { startServer } from "../support/server.ts";

test("answers OpenAI's SDK, which is given only the address", async () => {
  const { url } = await startServer({ script: [{ say: "You said {{user}}." }] });
  let printed = "";
  await ask(url, { conversation: "c1", text: "hello" }, (text) => {
    printed += text;
  });
  expect(printed).toBe("You said hello.");
});

test("a background response is printed in full over a broken connection", async () => {
  const { model, release } = heldAfter("two", [{ say: "one two three four five six" }]);
  const { url } = await startServer({ model });
  const proxy = await cuttingProxy(Number(new URL(url).port));
  onTestFinished(() => proxy.close());
  let printed = "";
  await askInBackground(`http://127.0.0.1:${proxy.port}`, "hello", (text) => {
    printed += text;
    if (!printed.endsWith("two")) return;
    proxy.cutAll();
    release();
  });
  expect(printed).toBe("one two three four five six");
  expect(proxy.connections).toBeGreaterThan(1);
});
