import { expect, test } from "vitest";
import { ask } from "../../examples/ag-ui/main.ts";
import { startServer } from "../support/server.ts";

test("answers an unmodified client, which is given only the address", async () => {
  const { url } = await startServer({ script: [{ say: "You said {{user}}." }] });
  expect(await ask(url, "t1", "hello")).toMatchObject([{ role: "assistant", content: "You said hello." }]);
});
