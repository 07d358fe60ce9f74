// A server on sqlite whose machine refuses what it needs for a while: its files may not grow, or it may open no more of them.

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { Agent, type IncomingMessage, request } from "node:http";
import { json } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { dataOf, textSeen } from "../support/drain.ts";
import { killed, type ServerProcess, serve } from "../support/process.ts";
import { temporaryFolder } from "../support/server.ts";
import { numbers, post, view } from "../support/sse.ts";

const WORDS = Array.from({ length: 40 }, (_, n) => `word${n}`).join(" ");

test("a full disk makes the server unready and refuses new work, and every run waits and succeeds", async () => {
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
  const stored = await view(server.url + viewer.headers.get("location"));
  await stored.ended();
  expect(stored.seen).toEqual(viewer.seen);
  await expect.poll(ready).toBe(200);
  expect((await start()).status).toBe(202);
});

test("calls that fail because no file can be opened leave one line that names the resource and counts them", async () => {
  const call = "{ tool: execute, args: { command: echo ok } }";
  // The words last until no file can be opened.
  const script = `- { say: ${`${WORDS} `.repeat(3)}, delay_ms: 50, call: [${call}] }\n${`- { call: [${call}, ${call}] }\n`.repeat(2)}- { say: over }`;
  const server = await serve(await temporaryFolder(), script);
  const viewer = await post(`${server.url}/threads/t/runs`, { input: "go" });
  await viewer.until(({ event }) => event === "on_chat_model_stream");
  forbidFiles(server);
  const events = await viewer.ended();
  expect(dataOf(events, "done")).toMatchObject([{ status: "success" }]);
  const failed = dataOf(events, "on_tool_end").filter(({ error }) => error !== undefined);
  expect(failed).toHaveLength(5);
  expect(await lacksAtTheEnd(server)).toMatchObject([
    { level: 40, resource: "file descriptors of the process", calls: 1, tool: "execute" },
  ]);
});

test("uploads that fail because no file can be opened leave the same line, not one per request", async () => {
  const server = await serve(await temporaryFolder(), "- { say: ok }");
  const { hostname, port } = new URL(server.url);
  // The limit counts connections, too.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const put = async () => {
    const options = { hostname, port, path: "/backend/files/a.txt", method: "PUT", agent };
    const sent = request(options).end("text");
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    return { status: answer.statusCode, body: await json(answer) };
  };
  expect(await put()).toMatchObject({ status: 201 });
  forbidFiles(server);
  for (let upload = 0; upload < 3; upload++)
    expect(await put()).toMatchObject({ status: 502, body: { code: "backend_failed" } });
  expect(await lacksAtTheEnd(server)).toMatchObject([
    { level: 40, resource: "file descriptors of the process", calls: 1, route: "PUT /backend/files/*" },
  ]);
  expect(server.output()).not.toContain("request failed");
});

/** Kills the server once it has written a line, because the log can arrive after the answers. */
async function lacksAtTheEnd(server: ServerProcess) {
  await expect.poll(() => lacksIn(server)).not.toEqual([]);
  await killed(server);
  return lacksIn(server);
}

/** From now on the process can open no file. It does nothing meanwhile. */
function forbidFiles({ child }: ServerProcess): void {
  const pid = String(child.pid);
  child.kill("SIGSTOP");
  const open = readdirSync(`/proc/${pid}/fd`).map(Number);
  // All numbers below are taken.
  const free = Array.from({ length: open.length + 1 }, (_, n) => n).find((n) => !open.includes(n));
  execFileSync("prlimit", ["--pid", pid, `--nofile=${free}:`]);
  child.kill("SIGCONT");
}

const lacksIn = (server: ServerProcess) =>
  server
    .output()
    .split("\n")
    .filter((line) => line.includes("run out of"))
    .map((line) => JSON.parse(line) as unknown);
