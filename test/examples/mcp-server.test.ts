import { expect, test } from "vitest";
import { ask } from "../../examples/mcp-server/main.ts";
import { startServer } from "../support/server.ts";

test("an agent is a tool for MCP's own client, which is given only the address", async () => {
  const { url } = await startServer({ script: [{ say: "You said {{user}}." }], config: { wires: ["mcp"] } });
  const told: string[] = [];
  expect(await ask(url, "hello", (what) => told.push(what))).toBe("You said hello.");
  expect(told).toEqual(["assistant thinks"]);
});
