import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { needing } from "../support/needing.ts";
import { temporaryFolder } from "../support/server.ts";
import { sharedRedis } from "../support/shared-stores.ts";
import { numbers, post, view } from "../support/sse.ts";
import { ask, logOf, pidsOf, samplesOf, serveTwo, workerWithRun } from "../support/workers.ts";

const redis = await sharedRedis();
afterAll(() => redis?.close());
const promtool = needing(!spawnSync("promtool", ["--version"]).error, "promtool");
const linux = needing(process.platform === "linux", "Linux, whose /proc lists threads");

/** A run that works until the test releases it. */
async function held() {
  const go = join(await temporaryFolder(), "go");
  const script = `
- { say: Working., call: [{ tool: execute, args: { command: "until [ -e ${go} ]; do sleep 0.05; done" } }] }
- { say: It is over. }`;
  const options = { script, agent: { backend: { type: "local" } } };
  return { options, release: () => writeFile(go, "") };
}
needing(redis, "redis-server").describe("two workers", () => {
  promtool.test("have metrics that Prometheus accepts", async () => {
    const server = await serveTwo(redis);
    const page = await (await ask(`${server.url}/metrics`)).text();
    const { status, stderr, stdout } = spawnSync("promtool", ["check", "metrics"], { input: page });
    expect([status, `${stdout}${stderr}`]).toEqual([0, ""]);
    const accept = "application/openmetrics-text; version=1.0.0";
    let open = "";
    const active = async () => {
      open = await (await ask(`${server.url}/metrics`, { headers: { accept } })).text();
      return open.match(/^skein_runs_active\{worker="\d"\} 0$/gm);
    };
    // A worker that does not respond within two seconds is left out.
    await expect.poll(active).toHaveLength(2);
    expect(open.match(/^# TYPE skein_runs_ended .*$/gm)).toEqual(["# TYPE skein_runs_ended counter"]);
    expect(open.match(/^# EOF$/gm)).toHaveLength(1);
    expect(open.endsWith("\n# EOF\n")).toBe(true);
  });

  test("show a run of one to the viewers of both", async () => {
    const { options, release } = await held();
    const server = await serveTwo(redis, options);
    const first = await post(`${server.url}/threads/t1/runs`, { input: "go" });
    const address = `${server.url}${first.headers.get("location")}`;
    const viewers = [];
    for (let viewer = 0; viewer < 4; viewer++) viewers.push(await view(address));
    let open: number[] = [];
    const all = async () => {
      open = [...(await samplesOf(server, "skein_streams_open")).values()];
      return open.reduce((sum, streams) => sum + streams, 0);
    };
    await expect.poll(all).toBe(5);
    expect(Math.min(...open)).toBeGreaterThan(0);
    await release();
    const events = await first.ended();
    for (const viewer of viewers) {
      expect(await viewer.ended()).toEqual(events);
      expect(numbers(viewer.seen)).toEqual(events.map((_, index) => index + 1));
    }
  });

  test("both serve the new agents after the file has changed, and read it again when the server is asked to", async () => {
    const server = await serveTwo(redis);
    const model = `scripted:${join(server.dir, "script.yaml")}`;
    const invalid = async () => [
      ...(await samplesOf(server, 'skein_config_reloads_total{outcome="invalid"}')).values(),
    ];
    await writeFile(join(server.dir, "broken.yaml"), "agents: {");
    await rename(join(server.dir, "broken.yaml"), join(server.dir, "agents.yaml"));
    await expect.poll(invalid).toEqual([1, 1]);
    server.child.kill("SIGHUP");
    await expect.poll(invalid).toEqual([2, 2]);
    await writeFile(join(server.dir, "agents.yaml"), JSON.stringify({ agents: { writer: { model } } }));
    server.child.kill("SIGHUP");
    const names = async () => {
      const answers = await Promise.all([1, 2, 3, 4].map(() => ask(`${server.url}/agents`)));
      const lists = (await Promise.all(answers.map((answer) => answer.json()))) as {
        items: { name: string }[];
      }[];
      return lists.map(({ items }) => items.map(({ name }) => name).join());
    };
    await expect.poll(names).toEqual(["writer", "writer", "writer", "writer"]);
  });

  linux.test("collect garbage with one thread each", async () => {
    const server = await serveTwo(redis);
    for (const pid of pidsOf(server).values()) {
      // Another thread may end while they are read.
      const collectors = () =>
        readdirSync(`/proc/${pid}/task`)
          .map((thread) => readFileSync(`/proc/${pid}/task/${thread}/comm`, "utf8").trim())
          .filter((name) => name === "V8Worker");
      await expect.poll(collectors).toHaveLength(1);
    }
  });

  test("do not outlive the process that started them", async () => {
    const server = await serveTwo(redis);
    server.child.kill("SIGKILL");
    await server.exited;
    for (const pid of pidsOf(server).values()) await expect.poll(() => isAlive(pid)).toBe(false);
  });

  test("a worker that was asked to stop finishes its runs, and another replaces it", async () => {
    const { options, release } = await held();
    const server = await serveTwo(redis, options);
    const viewer = await post(`${server.url}/threads/t1/runs`, { input: "go" });
    const worker = await workerWithRun(server);
    const before = pidsOf(server).get(worker) ?? expect.fail(`There is no worker ${worker}.`);
    process.kill(before, "SIGTERM");
    await release();
    expect((await viewer.ended()).at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
    await expect.poll(() => pidsOf(server).get(worker)).not.toBe(before);
    await expect
      .poll(() => logOf(server))
      .toContainEqual(expect.objectContaining({ worker, worker_pid: before, code: 0, restart_ms: 500 }));
  });
});

needing(redis, "redis-server").describe("two workers with the local backend", () => {
  const auth = { scheme: "header", trusted_proxies: ["127.0.0.1"] };
  const as = (user: string) => ({
    "x-skein-tenant": "acme",
    "x-skein-user": user,
    "x-skein-scopes": "read,run",
  });
  const local = { agent: { backend: { type: "local" } }, config: { auth } };
  /** On each of the workers. */
  const statuses = async (url: string, user: string, init: RequestInit = {}) => {
    const answers: Response[] = [];
    for (let worker = 0; worker < 2; worker++) answers.push(await ask(url, { ...init, headers: as(user) }));
    return answers.map(({ status }) => status);
  };

  test("serve only the first user: no worker accepts another", async () => {
    const server = await serveTwo(redis, local);
    const start = `${server.url}/backend/start`;
    expect(await statuses(start, "ada", { method: "POST" })).toEqual([200, 200]);
    expect(await statuses(start, "bob", { method: "POST" })).toEqual([403, 403]);
  });

  test("agree on whether a workspace is running, and each stops workspaces that another has started", async () => {
    const script = `- { call: [{ tool: execute, args: { command: "sleep 1000 & echo $!" } }] }
- { say: It runs. }`;
    const server = await serveTwo(redis, { ...local, script, config: {} });
    const viewer = await post(`${server.url}/threads/t1/runs`, { input: "go" });
    const events = await viewer.ended();
    const output = events.flatMap((event) =>
      event.event === "on_tool_end" ? [String(event.data.output)] : [],
    );
    const pid = Number(output[0]?.split("\n")[0]);
    expect(isAlive(pid)).toBe(true);
    const states = async () => {
      const answers = [await ask(`${server.url}/backend`), await ask(`${server.url}/backend`)];
      const all = (await Promise.all(answers.map((answer) => answer.json()))) as { status: string }[];
      return all.map(({ status }) => status);
    };
    await expect.poll(states).toEqual(["running", "running"]);
    // The first of the two may be the one that started it: then the other stops what is left, which is nothing.
    const stop = await ask(`${server.url}/backend/stop`, { method: "POST" });
    expect(stop.status).toBe(200);
    await expect.poll(() => isAlive(pid)).toBe(false);
    await expect.poll(states).toEqual(["stopped", "stopped"]);
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
