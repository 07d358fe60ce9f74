import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { textSeen } from "../support/drain.ts";
import { NODE_ENV } from "../support/node.ts";
import { post } from "../support/sse.ts";

const MAIN = fileURLToPath(new URL("../../examples/server/main.ts", import.meta.url));

test("a program serves its own agent with its tool, hook and route until a signal ends it", async () => {
  const child = spawn(process.execPath, [MAIN], {
    env: { ...NODE_ENV, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [line] = await once(child.stdout, "data");
  const url = /serves on (\S+)/.exec(String(line))?.[1];
  const run = async () => textSeen(await (await post(`${url}/threads/t/runs`, { input: "6 and 7" })).ended());
  expect(await run()).toBe("It is 42. (Say please.)");
  const overrides = await fetch(`${url}/agents/calculator/overrides`, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ hooks: { polite: { word: "thanks" } } }),
  });
  expect(overrides.status).toBe(200);
  expect(await run()).toBe("It is 42. (Say thanks.)");
  expect(await (await fetch(`${url}/plugins/status/`)).json()).toEqual({ hello: "default" });
  child.kill("SIGTERM");
  expect(await once(child, "close")).toEqual([0, null]);
});
