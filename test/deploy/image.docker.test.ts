// The image, built by the Dockerfile and run as docs/guides/deploy-container.md runs it.

import { beforeAll, expect, onTestFinished, test } from "vitest";
import { newApiKey } from "../../src/server/auth/api-keys.ts";
import { dataOf, textSeen } from "../support/drain.ts";
import { describeWithOwnEngine, type Engine } from "../support/engine.ts";
import { say, tokens } from "../support/fake-provider/script.ts";
import { startFakeProvider } from "../support/fake-provider/server.ts";
import { startRedis } from "../support/redis.ts";
import { post, type Viewer, view } from "../support/sse.ts";
import { buildImage, docker, logsOf, runImage } from "./support/image.ts";
import { prepareStack } from "./support/stack.ts";

/** It installs all packages, and compiles: minutes on a busy machine. */
const BUILD_MS = 2_700_000;

describeWithOwnEngine("the image", (engine) => {
  const { key } = newApiKey();
  const as = { authorization: `Bearer ${key}` };
  let port = 18_000;

  beforeAll(() => buildImage(engine), BUILD_MS);

  /**
   * A server in a container on the network of this test, once it is ready; removed when the test has finished. The name of the volume has
   * more than one letter: `c:/data` would be a path of Windows.
   */
  async function started(volume: string, more: Readonly<Record<string, string>> = {}) {
    const settings = {
      AUTH: "api_key",
      BOOTSTRAP_API_KEY: key,
      ALLOW_LOCAL_BACKEND: "1",
      PORT: String(++port),
      ...more,
    };
    const options = Object.entries(settings).flatMap(([name, value]) => ["--env", `${name}=${value}`]);
    const name = await runImage(engine, ["--network", "host", "--volume", `${volume}:/data`, ...options]);
    onTestFinished(async () => void (await docker(engine, ["rm", "--force", name])));
    const url = `http://127.0.0.1:${port}`;
    await expect.poll(() => stateOf(engine, name, url)).toBe("ready");
    return { name, url };
  }

  /** As a user stops it. 137 is a server that was killed, because ten seconds were not enough. */
  async function stopped(name: string) {
    await docker(engine, ["stop", name]);
    const { State } = await engine.docker.getContainer(name).inspect();
    expect(State.ExitCode, await logsOf(engine, name)).toBe(0);
  }

  /** The settings of a server whose model says its first answer for longer than a container has to stop. */
  async function slowModel() {
    const provider = await startFakeProvider();
    onTestFinished(() => provider.close());
    provider.enqueue({ ...tokens(1000), delayMs: 50 }, { blocks: [say("Over.")] });
    return { OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: `${provider.url}/v1` };
  }

  /** All events of the run that `viewer` saw until its server was stopped, from there on read at `url`. */
  async function continued(viewer: Viewer, url: string) {
    await viewer.ended();
    expect(viewer.others.at(-1)).toContain("server_shutdown");
    const cursor = { "last-event-id": viewer.seen.at(-1)?.id ?? "" };
    const path = viewer.headers.get("location") ?? "";
    const rest = await view(url + path, { headers: { ...as, ...cursor } });
    expect(rest.status).toBe(200);
    await rest.ended();
    const seen = [...viewer.seen, ...rest.seen];
    const whole = await view(url + path, { headers: as });
    await whole.ended();
    expect(whole.seen).toEqual(seen);
    return seen.map(({ event }) => event);
  }

  test("runs as an unprivileged user on a read-only file system, and is healthy", async () => {
    const { name, url } = await started("plain");
    const { Config, State } = await engine.docker.getContainer(name).inspect();
    expect(Config.User).toBe("10001:10001");
    expect(State.Running).toBe(true);
    await expect
      .poll(async () => (await engine.docker.getContainer(name).inspect()).State.Health?.Status)
      .toBe("healthy");
    await expect(docker(engine, ["exec", name, "touch", "/opt/skein/x"])).rejects.toThrow(
      "Read-only file system",
    );
    expect(await docker(engine, ["exec", name, "id", "-u"])).toBe("10001");
    // Every file of what the build has compiled can be read by that user.
    const read = "find /opt/skein/.compiled -type f -exec cat {} + | wc -c";
    expect(Number(await docker(engine, ["exec", name, "sh", "-c", read]))).toBeGreaterThan(100_000);
    const unread = "find /opt/skein/.compiled -type f ! -readable";
    expect(await docker(engine, ["exec", name, "sh", "-c", unread])).toBe("");
    const viewer = await post(`${url}/threads/demo/runs`, { input: "Hello" }, as);
    const events = await viewer.ended();
    expect(events.at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
    expect(textSeen(events)).toContain("385");
    for (const path of ["/", "/docs", "/openapi.yaml"]) expect((await fetch(url + path)).status).toBe(200);
    const made = await docker(engine, ["exec", name, "skein", "keys", "create", "--user", "ada"]);
    const me = await fetch(`${url}/me`, { headers: { authorization: `Bearer ${made}` } });
    expect(await me.json()).toMatchObject({ user: "ada" });
  });

  test("leaves no zombies of commands' processes", async () => {
    const { name } = await started("zombies");
    for (let left = 0; left < 5; left++) await docker(engine, ["exec", name, "sh", "-c", "sleep 0.2 & exit"]);
    const states = () => docker(engine, ["exec", name, "sh", "-c", "cat /proc/[0-9]*/stat 2>/dev/null"]);
    await expect.poll(async () => (await states()).includes("(sleep)")).toBe(false);
    expect(await states()).toContain("(tini)");
  });

  test("refuses to serve everyone if AUTH is not set, and names the setting", async () => {
    const name = await runImage(engine, ["--network", "none"]);
    await engine.docker.getContainer(name).wait();
    const logs = await logsOf(engine, name);
    expect(logs).toContain("AUTH=api_key");
    expect(logs).toContain("BOOTSTRAP_API_KEY");
    await docker(engine, ["rm", name]);
  });

  test("`docker stop` during a run loses nothing: the next container continues it on the same volume", async () => {
    const model = await slowModel();
    const first = await started("stopped", model);
    const viewer = await post(`${first.url}/threads/t/runs`, { input: "Hello" }, as);
    await viewer.until(({ event }) => event === "on_chat_model_stream");
    await stopped(first.name);
    const next = await started("stopped", model);
    const events = await continued(viewer, next.url);
    expect(dataOf(events, "run_resumed")).toEqual([{ attempt: 2 }]);
    expect(events.at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
    expect(textSeen(events)).toContain("Over.");
  });

  test("`docker stop` of one of two replicas during a run loses nothing: the other continues it", async () => {
    const redis = await startRedis();
    if (!redis) throw new Error("script/test-tools installs Redis.");
    onTestFinished(redis.close);
    const settings = { ...(await slowModel()), STORE: "redis", REDIS_URL: redis.url };
    const one = await started("one", settings);
    const other = await started("other", settings);
    const viewer = await post(`${one.url}/threads/t/runs`, { input: "Hello" }, as);
    await viewer.until(({ event }) => event === "on_chat_model_stream");
    await stopped(one.name);
    const events = await continued(viewer, other.url);
    expect(dataOf(events, "run_resumed")).toEqual([{ attempt: 2 }]);
    expect(events.at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
    expect(textSeen(events)).toContain("Over.");
  });

  test("compose.yaml runs it behind Caddy with sandboxes, and keeps runs while a replica is stopped and Redis restarts", async () => {
    const stack = await prepareStack(engine, { REDIS_PASSWORD: "secret", BOOTSTRAP_API_KEY: key });
    onTestFinished(async () => void (await stack.compose("down", "--volumes", "--timeout", "1")));
    await stack.compose("up", "--detach");
    await expect.poll(() => statusOf(`${stack.url}/ready`)).toBe(200);
    const viewer = await post(`${stack.url}/threads/demo/runs`, { input: "Hello" }, as);
    const events = await viewer.ended();
    // What its agent computes in a sandbox.
    expect(textSeen(events)).toContain("385");

    const path = stack.url + viewer.headers.get("location");
    const seenAgain = async () => {
      const again = await view(path, { headers: as });
      await again.ended();
      return again.seen;
    };
    await stack.compose("stop", "skein-1");
    await expect.poll(seenAgain).toEqual(viewer.seen);
    await stack.compose("restart", "redis");
    await expect.poll(seenAgain).toEqual(viewer.seen);
  });
});

const statusOf = async (url: string) => (await fetch(url).catch(() => undefined))?.status;

/** What it says instead of being ready, when it has ended. */
async function stateOf(engine: Engine, name: string, url: string): Promise<string> {
  const { State } = await engine.docker.getContainer(name).inspect();
  if (!State.Running) throw new Error(await logsOf(engine, name));
  return (await statusOf(`${url}/ready`)) === 200 ? "ready" : "starting";
}
