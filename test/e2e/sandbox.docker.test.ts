// A user's own container, met as a front end meets it: by runs, by the backend's routes, by the user's events.

import { createHash, randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { pino } from "pino";
import { expect, test } from "vitest";
import type { Turn } from "../../src/agent/models/scripted.ts";
import { describeWithOwnEngine, type Engine } from "../support/engine.ts";
import { type ServerOptions, startServer } from "../support/server.ts";
import { post, view } from "../support/sse.ts";

async function start(engine: Engine, options: ServerOptions = {}) {
  const image = await engine.image("debian");
  return startServer({
    agents: `
agents:
  coder:
    model: scripted:test
    backend: { type: docker, image: ${image}, memory: 256m, disk: 512m, tmp: 32m }
`,
    ...options,
    config: { backends: { docker: { host: engine.host, sweep: "0.2s" } }, ...options.config },
  });
}

const call = (tool: string, args: Record<string, unknown>): Turn => ({ call: [{ tool, args }] });

async function resultsOf(url: string, thread: string) {
  const response = await fetch(`${url}/threads/${thread}/messages`);
  const { items } = (await response.json()) as {
    items: { role: string; name?: string; content: string; error?: string }[];
  };
  return items.filter(({ role }) => role === "tool");
}

describeWithOwnEngine("an agent with a Docker backend", (engine) => {
  test("writes a file, runs Python on it and streams the output", async () => {
    const { url } = await start(engine, {
      script: [
        call("write_file", { path: "sum.py", content: "print(sum(range(101)), flush=True)\n" }),
        call("execute", { command: "python3 sum.py; uname -n; id -un" }),
        { say: "5050" },
      ],
    });
    const viewer = await post(`${url}/threads/t/runs`, { input: "add them up" });
    const events = await viewer.ended();
    expect(events.at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
    const progress = events.flatMap((event) =>
      event.event === "on_tool_progress" ? [event.data.output] : [],
    );
    expect(progress.join("")).toBe("5050\nsandbox\nsandbox\n");
    const file = await fetch(`${url}/backend/files/sum.py`);
    expect(await file.text()).toBe("print(sum(range(101)), flush=True)\n");
  });

  test("learns that its container was lost during a command, and continues", async () => {
    const { url } = await start(engine, {
      script: [
        call("write_file", { path: "f", content: "kept" }),
        call("execute", { command: "echo begun; sleep 300" }),
        call("execute", { command: "cat f" }),
        { say: "fine" },
      ],
    });
    const viewer = await post(`${url}/threads/t/runs`, { input: "go" });
    await viewer.until((event) => event.event === "on_tool_progress" && event.data.output.includes("begun"));
    const [container] = await engine.docker.listContainers({ filters: { label: ["skein.deployment"] } });
    await engine.docker.getContainer(container?.Id ?? "").remove({ force: true });
    expect((await viewer.ended()).at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
    const [, lost, next] = await resultsOf(url, "t");
    expect(lost?.error).toMatch(
      /sandbox was lost while the command was running: its container was (removed|killed)/,
    );
    expect(next?.content).toContain("kept");
    expect(next?.error).toBeUndefined();
  });

  test("reports the problem with its image, and the run continues", async () => {
    const log: string[] = [];
    const { url } = await start(engine, {
      logger: pino({ level: "warn" }, { write: (line: string) => log.push(line) }),
      agents:
        "agents: { coder: { model: 'scripted:test', backend: { type: docker, image: '127.0.0.1:1/none' } } }",
      script: [call("execute", { command: "true" }), { say: "I cannot." }],
    });
    const viewer = await post(`${url}/threads/t/runs`, { input: "go" });
    expect((await viewer.ended()).at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
    expect((await resultsOf(url, "t"))[0]?.error).toContain("`127.0.0.1:1/none`");
    const about = { tenant: "default", user: "default", backend: "coder", image: "127.0.0.1:1/none" };
    expect(log.map((line) => JSON.parse(line)).filter(({ image }) => image)).toEqual([
      expect.objectContaining({ ...about, level: 40, code: "backend_failed", err: expect.any(Object) }),
    ]);
    expect(await (await fetch(`${url}/backend`)).json()).toMatchObject({
      status: expect.stringMatching(/error|stopped/),
    });
    const file = await fetch(`${url}/backend/files/f`);
    expect(file.status).toBe(502);
    expect(await file.json()).toMatchObject({ code: "backend_failed" });
  });

  test("has its container created during the model call", async () => {
    const { url } = await start(engine, { script: [{ say: "hm ".repeat(1000), delay_ms: 300 }] });
    const viewer = await post(`${url}/threads/t/runs`, { input: "go" });
    await viewer.until((event) => event.event === "on_chat_model_stream");
    const status = async () => ((await (await fetch(`${url}/backend`)).json()) as { status: string }).status;
    await expect.poll(status).toBe("running");
    expect(viewer.seen.at(-1)?.event.event).toBe("on_chat_model_stream");
    viewer.leave();
  });
});

describeWithOwnEngine("the routes of a Docker backend", (engine) => {
  test("start, stop and restart it, and the user's events report each", async () => {
    const { url } = await start(engine);
    const listener = await view(`${url}/events`);
    const send = async (action: string) =>
      (await fetch(`${url}/backend/${action}`, { method: "POST" })).json() as Promise<{ status: string }>;
    expect((await send("start")).status).toBe("running");
    await fetch(`${url}/backend/files/f`, { method: "PUT", body: "kept" });
    expect((await send("stop")).status).toBe("stopped");
    expect((await send("restart")).status).toBe("running");
    expect(await (await fetch(`${url}/backend/files/f`)).text()).toBe("kept");
    const told = () =>
      listener.others.flatMap(
        (frame) => /"name":"coder","type":"docker","status":"(\w+)"/.exec(frame)?.[1] ?? [],
      );
    await expect.poll(told).toEqual(["starting", "running", "stopped", "starting", "running"]);
    listener.leave();
  });

  test("transfer a large file both ways without keeping it in memory", async () => {
    const { url } = await start(engine);
    await fetch(`${url}/backend/start`, { method: "POST" });
    const piece = randomBytes(1024 * 1024);
    const count = 60;
    const whole = createHash("sha256");
    for (let index = 0; index < count; index++) whole.update(piece);
    const before = process.memoryUsage().rss;
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage().rss);
    }, 20);
    const written = await fetch(`${url}/backend/files/large`, {
      method: "PUT",
      body: Readable.toWeb(
        Readable.from(
          (function* () {
            for (let index = 0; index < count; index++) yield piece;
          })(),
        ),
      ),
      duplex: "half",
    });
    expect(await written.json()).toMatchObject({ bytes_written: count * piece.length });
    const read = await fetch(`${url}/backend/files/large`);
    const hash = createHash("sha256");
    for await (const chunk of read.body ?? []) hash.update(chunk);
    clearInterval(watch);
    expect(hash.digest("hex")).toBe(whole.digest("hex"));
    expect(most - before).toBeLessThan(100 * 1024 * 1024);
    const part = await fetch(`${url}/backend/files/large`, { headers: { range: "bytes=1048574-1048579" } });
    expect(Buffer.from(await part.arrayBuffer())).toEqual(
      Buffer.concat([piece.subarray(-2), piece.subarray(0, 4)]),
    );
  });

  test("refuse a write that expects another version of a file, even within a second of its change", async () => {
    const { url } = await start(engine);
    const file = `${url}/backend/files/plan.md`;
    const write = async (body: string, headers: Record<string, string>) =>
      (await fetch(file, { method: "PUT", body, headers })).status;
    expect(await write("one", { "if-none-match": "*" })).toBe(201);
    const version = (await fetch(file)).headers.get("etag") ?? expect.fail();
    expect(await write("two", { "if-match": version })).toBe(201);
    expect(await write("six", { "if-match": version })).toBe(412);
    expect(await write("six", { "if-none-match": "*" })).toBe(412);
    expect(await (await fetch(file)).text()).toBe("two");
  });

  test("leave nothing of an interrupted upload", async () => {
    const { url } = await start(engine);
    const abort = new AbortController();
    const upload = fetch(`${url}/backend/files/half`, {
      method: "PUT",
      signal: abort.signal,
      duplex: "half",
      body: Readable.toWeb(
        Readable.from(
          (async function* () {
            yield randomBytes(3_000_000);
            abort.abort();
            await new Promise(() => {});
          })(),
        ),
      ),
    });
    await expect(upload).rejects.toThrow();
    expect((await fetch(`${url}/backend/files/half`)).status).toBe(404);
    const listed = async () =>
      ((await (await fetch(`${url}/backend/files/`)).json()) as { items: unknown[] }).items;
    await expect.poll(listed).toEqual([]);
  });

  test("return 503 while the engine is unavailable, and so does readiness", async () => {
    const { url } = await start(engine);
    expect((await fetch(`${url}/ready`)).status).toBe(200);
    // What readiness knows may be a second old.
    const readiness = async () => (await fetch(`${url}/ready`)).status;
    await engine.stop();
    try {
      await expect.poll(readiness).toBe(503);
      const file = await fetch(`${url}/backend/files/f`);
      expect(file.status).toBe(503);
      expect(await file.json()).toMatchObject({
        code: "unavailable",
        detail: expect.stringContaining("Docker engine"),
      });
    } finally {
      await engine.start();
    }
    await expect.poll(readiness).toBe(200);
  });
});
