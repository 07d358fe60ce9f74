// `skein connections`, against a running server.

import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { deleteConnection, listConnections, putConnection } from "../../../src/skein/cli/connections.ts";
import { startServer } from "../../support/server.ts";

const ADDRESS = "https://mcp.example.com/mcp";

async function started() {
  const { url } = await startServer({ config: { vault: { key: randomBytes(32).toString("base64") } } });
  return { url, key: undefined };
}

test("skein connections stores piped input, and lists and deletes connections without showing a secret", async () => {
  const server = await started();
  expect(await putConnection(server, "calendar", { address: ADDRESS }, "t0k3n\n")).toBe("Stored calendar.");
  await putConnection(server, "deploy", { variable: "DEPLOY_KEY", hosts: "api.example.com" }, "a b\n");
  const list = await listConnections(server);
  expect(list).toMatch(/calendar +static_bearer +https:\/\/mcp\.example\.com\/mcp +connected/);
  expect(list).toMatch(/deploy +environment_variable +DEPLOY_KEY +connected/);
  expect(list).not.toMatch(/t0k3n|a b/);
  const { output, note } = await deleteConnection(server, "calendar");
  expect([output, note]).toEqual([
    "Deleted calendar.",
    expect.stringContaining("may remain valid elsewhere"),
  ]);
  expect(await listConnections(server)).not.toContain("calendar");
});

test("a connection without a secret, or for both an address and a variable, is refused with the reason", async () => {
  const server = await started();
  await expect(putConnection(server, "a", { address: ADDRESS }, undefined)).rejects.toThrow("standard input");
  await expect(putConnection(server, "a", { address: ADDRESS }, " \n")).rejects.toThrow("standard input");
  await expect(putConnection(server, "a", {}, "t")).rejects.toThrow("either --address or --variable");
  const both = { address: ADDRESS, variable: "A" };
  await expect(putConnection(server, "a", both, "t")).rejects.toThrow("either --address or --variable");
  expect(await listConnections(server)).not.toContain(ADDRESS);
});
