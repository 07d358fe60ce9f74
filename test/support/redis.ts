// A real Redis for a test file, used by that file only.

import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { freePort } from "./free-port.ts";

const SCRIPT = fileURLToPath(new URL("../../script/test-redis", import.meta.url));

export interface TestRedis {
  readonly url: string;
  readonly port: number;
  /** As by `kill -9`; unsaved data is lost. */
  kill(): Promise<void>;
  /** Resolves when it answers. */
  start(): Promise<void>;
  /** It is there, and silent. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Its answer to a command, as `redis-cli` prints it. */
  ask(...command: string[]): string;
  close(): Promise<void>;
}

/** Starts one, with more of its own `options`; closed by the caller. Undefined where there is none: see needing.ts. */
export async function startRedis(...options: string[]): Promise<TestRedis | undefined> {
  const { status } = spawnSync("sh", [SCRIPT, "prepare"], { stdio: ["ignore", "inherit", "inherit"] });
  return status === 0 ? launch(await freePort(), options) : undefined;
}

/** A replica of the other one. Undefined as in `startRedis`. */
export async function startReplica(of: TestRedis): Promise<TestRedis | undefined> {
  of.ask("CONFIG", "SET", "repl-diskless-sync-delay", "0");
  const replica = await startRedis("--replicaof", "127.0.0.1", String(of.port));
  if (replica) await untilReplica(replica);
  return replica;
}

/** Resolves when `redis` has caught up with the server that it replicates. */
export async function untilReplica(redis: TestRedis): Promise<void> {
  while (!redis.ask("INFO", "replication").includes("master_link_status:up"))
    await new Promise((resolve) => setTimeout(resolve, 20));
}

/** Three that share the work, as a cluster; the first is to be asked for the others. Undefined as in `startRedis`. */
export async function startCluster(...options: string[]): Promise<TestRedis[] | undefined> {
  const nodes: TestRedis[] = [];
  for (const [index, slots] of SLOTS.entries()) {
    const bus = String(await freePort());
    const node = await startRedis("--cluster-enabled", "yes", "--cluster-port", bus, ...options);
    if (!node) return undefined;
    node.ask("CLUSTER", "ADDSLOTSRANGE", ...slots);
    if (index > 0) nodes[0]?.ask("CLUSTER", "MEET", "127.0.0.1", String(node.port), bus);
    nodes.push(node);
  }
  while (!nodes.every((node) => node.ask("CLUSTER", "INFO").includes("cluster_state:ok")))
    await new Promise((resolve) => setTimeout(resolve, 20));
  return nodes;
}

const SLOTS = [
  ["0", "5460"],
  ["5461", "10922"],
  ["10923", "16383"],
];

async function launch(port: number, options: readonly string[]): Promise<TestRedis> {
  const child = spawn("sh", [SCRIPT, "run", String(port), ...options], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const answers = createInterface(child.stdout)[Symbol.asyncIterator]();
  const answered = async () => {
    if ((await answers.next()).done) throw new Error("The test's Redis has ended by itself.");
  };
  const order = (what: string) => async () => {
    child.stdin.write(`${what}\n`);
    await answered();
  };
  await answered();
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    kill: order("kill"),
    start: order("start"),
    pause: order("pause"),
    resume: order("resume"),
    ask: (...command) => ask(port, command),
    async close() {
      child.stdin.end();
      await exited;
    },
  };
}

function ask(port: number, command: readonly string[]): string {
  return execFileSync("redis-cli", ["-p", String(port), ...command], { encoding: "utf8" }).trimEnd();
}
