// `skein triggers`, against a running server.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  deleteTrigger,
  listTriggerDeliveries,
  listTriggers,
  putTrigger,
  rotateTrigger,
  testTrigger,
} from "../../../src/skein/cli/triggers.ts";
import { startServer } from "../../support/server.ts";

test("skein triggers creates, tests, lists and deletes triggers, and shows the outcome of deliveries", async () => {
  const { url, dir } = await startServer({ script: [{ say: "Hello." }] });
  const server = { url, key: undefined };
  const made = await putTrigger(server, "notes", {
    ...{ agent: "assistant", scheme: "token", input: "{{body.text}}" },
  });
  const [address = "", secret = ""] = made.output.split("\n");
  const send = (token: string) =>
    fetch(address, {
      method: "POST",
      body: JSON.stringify({ text: "hello" }),
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    });
  expect((await send(secret)).status).toBe(202);
  await expect.poll(() => listTriggerDeliveries(server, "notes")).toMatch(/started +\S+ +run_/);

  const body = join(dir, "delivery.json");
  await writeFile(body, `{ "text": "tried" }`);
  expect(JSON.parse(await testTrigger(server, "notes", body))).toMatchObject({ input: "tried" });
  await writeFile(body, "no JSON");
  await expect(testTrigger(server, "notes", body)).rejects.toThrow("does not contain JSON");

  const own = join(dir, "secret");
  await writeFile(own, "a-secret-of-the-sender\n");
  expect((await rotateTrigger(server, "notes", { secret: own })).output).toBe(address);
  expect((await send("a-secret-of-the-sender")).status).toBe(202);
  expect((await rotateTrigger(server, "notes", {})).output.split("\n")).toHaveLength(2);
  expect(await listTriggers(server)).toMatch(/notes +assistant +token +on +http:\S+\/hooks\//);
  expect(await deleteTrigger(server, "notes")).toBe("Deleted notes.");
  expect(await listTriggers(server)).not.toContain("notes");

  const slack = { agent: "assistant", scheme: "slack", input: "{{body.event.text}}", paused: true };
  expect((await putTrigger(server, "slack", slack)).output).toMatch(/\/hooks\/\S+$/);
  expect(await listTriggers(server)).toMatch(/slack .* paused/);
});
