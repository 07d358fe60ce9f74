// The servers under test, each started as its users start it.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Children, freePort, type Server } from "./children.ts";

export const STORES = ["memory", "sqlite", "redis"] as const;
export const PROVIDERS = ["openai", "anthropic"] as const;
export type Store = (typeof STORES)[number];
export type Provider = (typeof PROVIDERS)[number];

export interface Target {
  /** A new process with nothing in it. `nodeArgs` go to Node itself. The relay takes no settings. */
  start(nodeArgs?: readonly string[], settings?: Settings): Promise<Server>;
}

/** Over what every scenario has. */
export interface Settings {
  readonly env?: Readonly<Record<string, string>>;
  /** More agents, by name, with the same model unless they have one. */
  readonly agents?: Readonly<Record<string, object>>;
}

export interface Surroundings {
  readonly children: Children;
  /** A folder for all files; its creator removes it. */
  readonly dir: string;
  readonly providerPort: number;
}

const ROOT = join(import.meta.dirname, "..");

export function bareRelay({ children, dir, providerPort }: Surroundings): Target {
  return {
    start: (nodeArgs = []) =>
      children.serve({
        program: [process.execPath, ...nodeArgs, join(import.meta.dirname, "bare-relay.ts")],
        place: "measured",
        env: { PROVIDER_URL: `http://127.0.0.1:${providerPort}/v1` },
        logFile: join(dir, "bare.log"),
      }),
  };
}

/**
 * The server of the checkout in the folder `root`, built first when its build is not fresh, with a Redis of its own.
 * Throws when it does not build or when there is no Redis.
 */
export async function skein(
  { children, dir, providerPort }: Surroundings,
  store: Store,
  provider: Provider,
  root = ROOT,
): Promise<Target> {
  const built = spawnSync("sh", [join(root, "script/build")], { encoding: "utf8", cwd: root });
  if (built.status !== 0) throw new Error(`The server does not build.\n${built.stdout}${built.stderr}`);
  const redis = store === "redis" ? { REDIS_URL: await startRedis(children, dir) } : {};
  return {
    start: (nodeArgs = [], { env, agents } = {}) => {
      const home = mkdtempSync(join(dir, "skein-"));
      return children.serve({
        program: [process.execPath, ...nodeArgs, join(root, "dist/main.js"), "serve"],
        place: "measured",
        env: {
          ...configure(home, providerPort, provider, agents),
          STORE: store,
          LOG_LEVEL: "warn",
          ...redis,
          ...env,
        },
        logFile: join(home, "log"),
      });
    },
  };
}

/** It writes nothing down: what a disk costs is not the question. */
async function startRedis(children: Children, dir: string): Promise<string> {
  const port = await freePort();
  const program = ["redis-server", "--port", String(port), "--bind", "127.0.0.1", "--save", "", "--dir", dir];
  const redis = children.start({ program, place: "around", logFile: join(dir, "redis.log") });
  for (;;) {
    const { stdout } = spawnSync("redis-cli", ["-p", String(port), "ping"], { encoding: "utf8" });
    if (stdout?.startsWith("PONG")) return `redis://127.0.0.1:${port}`;
    if (redis.process.exitCode !== null) throw new Error(`There is no Redis. ${redis.complaint()}`);
    await sleep(20);
  }
}

function configure(
  home: string,
  providerPort: number,
  provider: Provider,
  agents: Settings["agents"],
): Record<string, string> {
  const files = { AGENTS_FILE: join(home, "agents.yaml"), CONFIG_FILE: join(home, "server.yaml") };
  const base_url = `http://127.0.0.1:${providerPort}${provider === "openai" ? "/v1" : ""}`;
  const bench = {
    model: { provider, model: "fake", base_url, api_key: "test" },
    system_prompt: "You are a helpful assistant.",
  };
  const others = Object.entries(agents ?? {}).map(([name, agent]) => [
    name,
    { model: bench.model, ...agent },
  ]);
  const all = { bench, ...Object.fromEntries(others) };
  // JSON is YAML.
  writeFileSync(files.AGENTS_FILE, JSON.stringify({ version: 1, agents: all }));
  writeFileSync(files.CONFIG_FILE, JSON.stringify({ limits: { runs: 2000 } }));
  const data = join(home, "data");
  mkdirSync(data);
  return { ...files, DATA_DIR: data };
}
