// A real PostgreSQL for a test file, used by that file only.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { freePort } from "./free-port.ts";

const SCRIPT = fileURLToPath(new URL("../../script/test-postgres", import.meta.url));

export interface TestPostgres {
  /** Of the database `postgres`. */
  readonly url: string;
  readonly port: number;
  /** As by `kill -9`. */
  kill(): Promise<void>;
  /** Resolves when it answers. */
  start(): Promise<void>;
  /** It is there, and silent. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** The url of a new, empty database. */
  database(): Promise<string>;
  /** The rows that a statement returns. */
  ask(url: string, sql: string): Promise<Record<string, unknown>[]>;
  close(): Promise<void>;
}

/** Starts one, with more `settings`, such as `max_connections=20`; closed by the caller. Undefined where there is none: see needing.ts. */
export async function startPostgres(...settings: string[]): Promise<TestPostgres | undefined> {
  const { status } = spawnSync("sh", [SCRIPT, "prepare"], { stdio: ["ignore", "inherit", "inherit"] });
  return status === 0 ? launch(await freePort(), settings) : undefined;
}

async function launch(port: number, settings: readonly string[]): Promise<TestPostgres> {
  const child = spawn("sh", [SCRIPT, "run", String(port), ...settings], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const answers = createInterface(child.stdout)[Symbol.asyncIterator]();
  const answered = async () => {
    if ((await answers.next()).done) throw new Error("The test's PostgreSQL has ended by itself.");
  };
  const order = (what: string) => async () => {
    child.stdin.write(`${what}\n`);
    await answered();
  };
  await answered();
  const urlOf = (database: string) => `postgres://postgres@127.0.0.1:${port}/${database}`;
  let databases = 0;
  return {
    url: urlOf("postgres"),
    port,
    kill: order("kill"),
    start: order("start"),
    pause: order("pause"),
    resume: order("resume"),
    async database() {
      const name = `test_${databases++}`;
      await ask(urlOf("postgres"), `CREATE DATABASE ${name}`);
      return urlOf(name);
    },
    ask,
    async close() {
      child.stdin.end();
      await exited;
    },
  };
}

async function ask(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows ?? [];
  } finally {
    await client.end();
  }
}
