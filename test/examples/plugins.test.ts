import { cp } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { textSeen } from "../support/drain.ts";
import { serving, skein } from "../support/process.ts";
import { temporaryFolder } from "../support/server.ts";
import { post } from "../support/sse.ts";

const EXAMPLE = fileURLToPath(new URL("../../examples/plugins", import.meta.url));

test("a server with its own code: a tool, a hook, a provider, authentication and a route", async () => {
  const dir = await temporaryFolder();
  await cp(EXAMPLE, dir, { recursive: true });
  const env = {
    PORT: "0",
    STORE: "memory",
    CONFIG_FILE: join(dir, "server.yaml"),
    AGENTS_FILE: join(dir, "agents.yaml"),
  };
  const { url } = await serving(skein(["serve"], { ...env, DATA_DIR: join(dir, "data") }));
  const ada = { "x-badge": "badge-of-ada" };
  const run = await post(`${url}/threads/t/runs`, { input: "What is silk?" }, ada);
  expect(textSeen(await run.ended())).toBe("12 euros The shop closes at 20:00.");

  const order = (headers: Record<string, string>) =>
    fetch(`${url}/plugins/company/orders`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ yarn: "silk" }),
    });
  expect([(await order({})).status, (await order({ "x-badge": "badge-of-bob" })).status]).toEqual([401, 403]);
  expect(await (await order(ada)).json()).toEqual({ orders: 1 });
  const orders = await fetch(`${url}/plugins/company/orders`, { headers: ada });
  expect(await orders.json()).toEqual([{ user: "ada", yarn: "silk" }]);
});
