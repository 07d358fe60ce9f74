// A server on sqlite whose disk takes nothing for a while: the system refuses to let its files grow.

import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { dataOf, textSeen } from "../support/drain.ts";
import { serve } from "../support/process.ts";
import { temporaryFolder } from "../support/server.ts";
import { numbers, post } from "../support/sse.ts";

const WORDS = Array.from({ length: 40 }, (_, n) => `word${n}`).join(" ");

test("a full disk turns the server unready and refuses what is new, and every run waits and succeeds", async () => {
  const server = await serve(await temporaryFolder(), `- { say: ${WORDS}, delay_ms: 50 }`);
  const limit = (bytes: string) =>
    execFileSync("prlimit", ["--pid", String(server.child.pid), `--fsize=${bytes}`]);
  const ready = async () => (await fetch(`${server.url}/ready`)).status;
  const start = () =>
    fetch(`${server.url}/threads/u/runs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ input: "Hi", background: true }),
    });
  const viewer = await post(`${server.url}/threads/t/runs`, { input: "go" });
  await viewer.until(({ event }) => event === "on_chat_model_stream");
  limit("1:unlimited");
  await expect.poll(ready).toBe(503);
  const refused = await start();
  expect(refused.status).toBe(503);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await refused.json()).toMatchObject({ code: "unavailable" });
  limit("unlimited:unlimited");
  const events = await viewer.ended();
  expect(numbers(viewer.seen)).toEqual(viewer.seen.map((_, index) => index + 1));
  expect(dataOf(events, "done")).toMatchObject([{ status: "success" }]);
  expect(textSeen(events)).toBe(WORDS);
  await expect.poll(ready).toBe(200);
  expect((await start()).status).toBe(202);
});
