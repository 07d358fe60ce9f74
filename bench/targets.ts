// The servers under test, each started the way its users start it.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { transformSync } from "esbuild";
import { startPostgres } from "../test/support/postgres.ts";
import { type Children, freePort, type Server } from "./children.ts";

export const STORES = ["memory", "sqlite", "redis", "postgres"] as const;
export const PROVIDERS = ["openai", "anthropic"] as const;
export type Store = (typeof STORES)[number];
export type Provider = (typeof PROVIDERS)[number];

export interface Target {
  /** Starts a new, empty process. `nodeArgs` go to Node itself. The relay takes no settings. */
  start(nodeArgs?: readonly string[], settings?: Settings): Promise<Server>;
}

/** Settings in addition to those of every scenario. */
export interface Settings {
  readonly env?: Readonly<Record<string, string>>;
  /** Additional agents by name. They use the same model unless they have their own. */
  readonly agents?: Readonly<Record<string, object>>;
}

export interface Surroundings {
  readonly children: Children;
  /** The folder for all files. Its creator removes it. */
  readonly dir: string;
  readonly providerPort: number;
}

const ROOT = join(import.meta.dirname, "..");
/** The same as in script/start, and used for the relay too. */
const NODE_ARGS = ["--v8-pool-size=0", "--min-semi-space-size=2"];

export const bareRelay = (around: Surroundings): Target => plainServer("bare-relay", around);
export const aiSdk = (around: Surroundings): Target => plainServer("ai-sdk", around);

/**
 * Returns a server that is one file in this folder. It is compiled once, because TypeScript would make each start a
 * third slower.
 */
function plainServer(name: string, { children, dir, providerPort }: Surroundings): Target {
  // Next to the packages that it imports.
  const folder = join(ROOT, "node_modules/.cache/bench");
  const program = join(folder, `${name}.mjs`);
  const source = readFileSync(join(import.meta.dirname, `${name}.ts`), "utf8");
  mkdirSync(folder, { recursive: true });
  writeFileSync(program, transformSync(source, { loader: "ts" }).code);
  return {
    start: (nodeArgs = []) =>
      children.serve({
        program: [process.execPath, ...NODE_ARGS, ...nodeArgs, program],
        place: "measured",
        env: {
          PROVIDER_URL: `http://127.0.0.1:${providerPort}/v1`,
          NODE_COMPILE_CACHE: join(folder, "compiled"),
        },
        logFile: join(dir, `${name}.log`),
      }),
  };
}

/**
 * Returns the server of the checkout in the folder `root`, with its own Redis or PostgreSQL. Builds the server first if
 * its build is out of date. Throws if it does not build, or if there is no such store.
 */
export async function skein(
  { children, dir, providerPort }: Surroundings,
  store: Store,
  provider: Provider,
  root = ROOT,
): Promise<Target> {
  const built = spawnSync("sh", [join(root, "script/build")], { encoding: "utf8", cwd: root });
  if (built.status !== 0) throw new Error(`The server does not build.\n${built.stdout}${built.stderr}`);
  const databases = await DATABASES[store]?.(children, dir);
  return {
    start: async (nodeArgs = [], { env, agents } = {}) => {
      const database = await databases?.();
      const home = mkdtempSync(join(dir, "skein-"));
      return children.serve({
        program: [process.execPath, ...NODE_ARGS, ...nodeArgs, join(root, "dist/main.js"), "serve"],
        place: "measured",
        env: {
          ...configure(home, providerPort, provider, agents),
          STORE: store,
          LOG_LEVEL: "warn",
          ...database,
          ...env,
        },
        logFile: join(home, "log"),
      });
    },
  };
}

/**
 * Returns the variable for an empty database. The databases do not wait for the disk, because its speed is not
 * measured.
 */
type StartDatabases = (children: Children, dir: string) => Promise<() => Promise<Record<string, string>>>;

const DATABASES: Partial<Record<Store, StartDatabases>> = {
  async redis(children, dir) {
    const port = await freePort();
    const options = ["--bind", "127.0.0.1", "--save", "", "--dir", dir, "--databases", "1000"];
    const program = ["redis-server", "--port", String(port), ...options];
    const redis = children.start({ program, place: "around", logFile: join(dir, "redis.log") });
    for (let databases = 0; ; await sleep(20)) {
      const { stdout } = spawnSync("redis-cli", ["-p", String(port), "ping"], { encoding: "utf8" });
      if (stdout?.startsWith("PONG"))
        return async () => ({ REDIS_URL: `redis://127.0.0.1:${port}/${databases++}` });
      if (redis.process.exitCode !== null) throw new Error(`There is no Redis. ${redis.complaint()}`);
    }
  },
  async postgres() {
    // Runs alongside this process and ends with it.
    const postgres = await startPostgres();
    if (!postgres) throw new Error("There is no PostgreSQL.");
    return async () => ({ POSTGRES_URL: await postgres.database() });
  },
};

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
  // JSON is valid YAML.
  writeFileSync(files.AGENTS_FILE, JSON.stringify({ version: 1, agents: all }));
  writeFileSync(files.CONFIG_FILE, JSON.stringify({ limits: { runs: 2000 } }));
  const data = join(home, "data");
  mkdirSync(data);
  return { ...files, DATA_DIR: data };
}
