import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { StreamEvent } from "../../src/protocol/event.ts";
import { dataOf, names, textSeen } from "../support/drain.ts";
import { needing } from "../support/needing.ts";
import { NODE_ENV } from "../support/node.ts";
import { killed, type Skein, serve, serving, skein, started } from "../support/process.ts";
import { MAIN } from "../support/program.ts";
import { temporaryFolder } from "../support/server.ts";
import { post, seenOn, view } from "../support/sse.ts";

const linux = needing(process.platform === "linux", "Linux, whose /proc contains the file limit");

/** Minutes, at one word in some milliseconds. */
const AND_ON = "word ".repeat(5_000).trim();
const isDelta = ({ event }: StreamEvent) => event === "on_chat_model_stream";
const isOutput = (event: StreamEvent) =>
  event.event === "on_tool_progress" && event.data.output.includes("once");

interface Killing {
  readonly run?: object;
  /** Of the next process. */
  readonly nextAgent?: string;
  readonly nextScript?: string;
}

/** Kills the server at that event. Returns the next process, and all events that a viewer of the run has seen. */
async function killedAt(
  isMoment: (event: StreamEvent) => boolean,
  script: string,
  { run = { input: "go" }, nextAgent, nextScript = script }: Killing = {},
) {
  const dir = await temporaryFolder();
  const first = await serve(dir, script);
  const viewer = await post(`${first.url}/threads/t1/runs`, run);
  await viewer.until(isMoment);
  await killed(first);
  await viewer.ended().catch(() => {});
  const second = await serve(dir, nextScript, {}, nextAgent);
  return { second, events: await seenOn(viewer, second) };
}

describe("kill -9 of a server on sqlite", () => {
  test("during a command: the next process continues, and the command is not run twice", async () => {
    const script = `
- { say: Working., call: [{ tool: execute, args: { command: "echo once | tee -a marks; sleep 60" } }] }
- { say: I will look first., call: [{ tool: execute, args: { command: "cat marks" } }] }
- { say: All done. }`;
    const { events } = await killedAt(isOutput, script);
    expect(names(events)).toContain("run_resumed");
    const messages = dataOf(events, "on_message").map(({ message }) => message);
    expect(messages.find((message) => message.role === "tool" && message.error)).toMatchObject({
      error: expect.stringMatching(/Outcome unknown/),
    });
    expect(messages.findLast((message) => message.role === "tool")?.content).toMatch(/once/);
    expect(JSON.stringify(messages.at(-1))).toContain("All done.");
  });

  test("during a model call: the call is repeated, and the viewer is notified", async () => {
    const script = `- { say: one two three ${AND_ON}, delay_ms: 40 }`;
    const nextScript = "- { say: one two three four five six seven eight }";
    const isThree = (event: StreamEvent) => isDelta(event) && JSON.stringify(event).includes("three");
    const { second, events } = await killedAt(isThree, script, { nextScript });
    const [open] = dataOf(events, "on_chat_model_start");
    expect(dataOf(events, "message_discard")).toEqual([{ message_id: open?.message_id }]);
    const again = events.slice(names(events).indexOf("run_resumed"));
    expect(textSeen(again)).toBe("one two three four five six seven eight");
    const thread = await (await fetch(`${second.url}/threads/t1/state`)).json();
    expect(thread).toMatchObject({ status: "idle", version: 2 });
  });

  test("whose agent was removed before the restart: the run fails with every span closed", async () => {
    const script = `- { say: Working., call: [{ tool: execute, args: { command: "echo once; sleep 60" } }] }`;
    const { second, events } = await killedAt(isOutput, script, { nextAgent: "another" });
    expect(dataOf(events, "on_tool_end")[0]?.error).toMatch(/Outcome unknown/);
    expect(dataOf(events, "error")[0]).toMatchObject({
      code: "invalid_request",
      message: expect.stringMatching(/assistant/),
    });
    expect(await (await fetch(`${second.url}/threads/t1`)).json()).toMatchObject({ status: "error" });
  });

  test("during a call that started the run: its outcome is unknown, and it is not run twice", async () => {
    const script = `- { say: I saw it. }`;
    const calls = [{ name: "execute", args: { command: "echo once | tee -a marks; sleep 60" } }];
    const { second, events } = await killedAt(isOutput, script, { run: { calls } });
    expect(names(events).filter((name) => name === "on_tool_start")).toHaveLength(2);
    const roles = dataOf(events, "on_message").map(({ message }) => message.role);
    expect(roles).toEqual(["assistant", "tool", "assistant"]);
    expect(dataOf(events, "on_tool_end").at(-1)?.error).toMatch(/^Outcome unknown/);
    const again = [{ name: "execute", args: { command: "cat marks" } }];
    const look = await (await post(`${second.url}/threads/t2/runs`, { calls: again })).ended();
    expect(dataOf(look, "on_tool_end")[0]?.output).toBe("once\n[exit_code: 0]");
  });

  test("while a run with calls is queued: they run once after the restart", async () => {
    const dir = await temporaryFolder();
    const first = await serve(dir, `- { say: ${AND_ON}, delay_ms: 30 }`);
    const running = await post(`${first.url}/threads/t1/runs`, { input: "1" });
    await running.until(isDelta);
    const calls = [{ name: "execute", args: { command: "echo once >> marks; cat marks" } }];
    const waiting = await post(`${first.url}/threads/t1/runs`, { calls, on_busy: "enqueue" });
    await killed(first);
    const second = await serve(dir, "- { say: a b c }");
    const events = await (await view(second.url + waiting.headers.get("location"))).ended();
    expect(dataOf(events, "on_tool_end").map(({ output }) => output)).toEqual(["once\n[exit_code: 0]"]);
  });
});

describe("SIGTERM", () => {
  test("hands unfinished runs to the next start after the deadline, and exits with 0", async () => {
    const dir = await temporaryFolder();
    const config = join(dir, "server.yaml");
    await writeFile(config, "shutdown: { grace: 0.1s }\n");
    const script = `
- { call: [{ tool: execute, args: { command: "sleep 60" } }] }
- { say: I will not wait again. }`;
    const first = await serve(dir, script, { CONFIG_FILE: config });
    const viewer = await post(`${first.url}/threads/t1/runs`, { input: "go" });
    await viewer.until(({ event }) => event === "on_tool_start");
    first.child.kill("SIGTERM");
    await viewer.ended();
    expect(viewer.others.at(-1)).toContain("server_shutdown");
    expect(await first.exited).toBe(0);

    const second = await serve(dir, script, { CONFIG_FILE: config });
    expect(textSeen(await seenOn(viewer, second))).toBe("I will not wait again.");
  });
});

/** The output of a process once `text` is in it. */
const untilSaid = ({ output }: Pick<Skein, "output">, text: string) =>
  expect.poll(output, { interval: 5 }).toContain(text);

/**
 * Sends the same signal again once the server has reported the first one. Returns how far apart they were, in ms, and what became of the
 * server and its run.
 */
async function signalledTwice(name: NodeJS.Signals) {
  const dir = await temporaryFolder();
  const server = await serve(dir, `- { say: ${"word ".repeat(60)}, delay_ms: 40 }`);
  const viewer = await post(`${server.url}/threads/t1/runs`, { input: "go" });
  await viewer.until(isDelta);
  const begun = performance.now();
  server.child.kill(name);
  await untilSaid(server, "shutting down");
  server.child.kill(name);
  const apart = performance.now() - begun;
  const events = await viewer.ended().catch(() => []);
  return { apart, last: events.at(-1), code: await server.exited };
}

describe("Ctrl-C in a terminal, or a signal to the group of `npm start`,", () => {
  test.each(["SIGINT", "SIGTERM"] as const)(
    "reaches the server as two of %s at once, and the active run still ends first",
    async (name) => {
      // A server takes signals within a second for one. On a busy machine they may be further apart: then it says nothing.
      let seen = await signalledTwice(name);
      for (let tries = 1; seen.code !== 0 && seen.apart > 500 && tries < 10; tries++)
        seen = await signalledTwice(name);
      expect(seen).toMatchObject({ code: 0, last: { event: "done", data: { status: "success" } } });
    },
  );

  test("ends the process immediately if another signal follows", async () => {
    const dir = await temporaryFolder();
    const server = await serve(dir, `- { say: ${"word ".repeat(1000)}, delay_ms: 40 }`);
    const viewer = await post(`${server.url}/threads/t1/runs`, { input: "go" });
    await viewer.until(isDelta);
    server.child.kill("SIGINT");
    await untilSaid(server, "shutting down");
    server.child.kill("SIGTERM");
    expect(await server.exited).toBe(1);
    await viewer.ended().catch(() => {});
  });
});

describe("a server that is asked to stop", () => {
  test("does not wait for a silent connection", async () => {
    const dir = await temporaryFolder();
    const server = await serve(dir, "- { say: ok }");
    const silent = connect(Number(new URL(server.url).port), "127.0.0.1");
    await once(silent, "connect");
    const half = connect(Number(new URL(server.url).port), "127.0.0.1");
    half.write("POST /threads HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{");
    await once(half, "connect");
    for (const socket of [silent, half]) socket.on("error", () => {});
    const closed = Promise.all(
      [silent, half].map((socket) => new Promise((resolve) => socket.once("close", resolve))),
    );
    server.child.kill("SIGTERM");
    expect(await server.exited).toBe(0);
    silent.resume();
    half.resume();
    await closed;
  });
});

linux.test("a process that may open few files refuses connections before it runs out of files", async () => {
  const dir = await temporaryFolder();
  await writeFile(join(dir, "agents.yaml"), "agents: { assistant: { model: 'openai:gpt-5' } }");
  const env = { ...NODE_ENV, PORT: "0", DATA_DIR: join(dir, "data"), AGENTS_FILE: join(dir, "agents.yaml") };
  const command = ['ulimit -n 200 && exec "$0" "$@"', process.execPath, MAIN, "serve"];
  const server = started(spawn("sh", ["-c", ...command], { env }));
  onTestFinished(() => killed(server));
  const port = Number(new URL((await serving(server)).url).port);
  for (let n = 0; n < 140; n++) {
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    onTestFinished(() => void socket.destroy());
  }
  await expect.poll(server.output).toMatch(/"most":136.*connections were refused/);
});

describe("the command line", () => {
  test("refuses to listen on a public address without authentication, and says how to fix it", async () => {
    const run = skein(["serve"], { HOST: "0.0.0.0", PORT: "0" });
    expect(await run.exited).toBe(1);
    expect(run.output()).toMatch(/HOST=0\.0\.0\.0.*no authentication.*HOST=127\.0\.0\.1/s);
  });

  test.each(["none", "api_key", "header"])("shows a first request that works, with AUTH %s", async (AUTH) => {
    const dir = await temporaryFolder();
    const env = { AUTH, TRUSTED_PROXIES: "127.0.0.1", ALLOW_LOCAL_BACKEND: "true" };
    const server = await serve(dir, "- { say: ok }", env);
    await expect.poll(() => server.output()).toMatch(/curl -N .* -d '.*'\n/);
    const lines = server.output().match(/^ {2}(?:export|curl) .*/gm) ?? [];
    const shell = { ...NODE_ENV, HOME: dir, DATA_DIR: join(dir, "data"), AUTH };
    const reply = execFileSync("sh", ["-ec", lines.join("\n")], { stdio: "pipe", env: shell });
    expect(reply.toString()).toContain('"status":"success"');
  });

  test("refuses a data folder that another server uses", async () => {
    const dir = await temporaryFolder();
    await serve(dir, "- { say: ok }");
    const env = { PORT: "0", DATA_DIR: join(dir, "data"), AGENTS_FILE: join(dir, "agents.yaml") };
    const second = skein(["serve"], env);
    expect(await second.exited).toBe(1);
    expect(second.output()).toMatch(/in use by another process/);
  });

  test("lists every configuration problem with its location", async () => {
    const dir = await temporaryFolder();
    const file = join(dir, "agents.yaml");
    await writeFile(file, "agents:\n  a:\n    modle: openai:gpt-5\n  b:\n    max_iterations: many\n");
    const run = skein(["config", "check"], { AGENTS_FILE: file });
    expect(await run.exited).toBe(1);
    expect(run.output()).toMatch(/agents\.yaml:3:5.*modle.*model/);
    expect(run.output()).toMatch(/agents\.yaml:5:\d+.*max_iterations/);
  });

  test("names a port in use, and leaves nothing running", async () => {
    const dir = await temporaryFolder();
    const first = await serve(dir, "- { say: ok }");
    const port = new URL(first.url).port;
    const env = { PORT: port, DATA_DIR: join(dir, "other"), AGENTS_FILE: join(dir, "agents.yaml") };
    const second = skein(["serve"], env);
    expect(await second.exited).toBe(1);
    expect(second.output()).toContain(`127.0.0.1:${port} is taken. Set PORT`);
  });

  test("reports immediately if no server responds", async () => {
    const run = skein(["chat", "--url", "http://127.0.0.1:1"], {});
    expect(await run.exited).toBe(1);
    expect(run.output()).toMatch(/No Skein server responds at http:\/\/127\.0\.0\.1:1/);
  });
});
