// A local backend in a folder of its own, for as long as the test file takes.

import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import type { BackendPool } from "../../src/agent/core/backend.ts";
import type { PoolOptions } from "../../src/sandbox/pool.ts";
import { newPool } from "../support/pool.ts";

export const ada = { tenant: "acme", user: "ada" };
export const config = { type: "local", name: "code" };

const pools: BackendPool[] = [];
const folders: string[] = [];

afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.close()));
  await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })));
});

/** `dataDir` is the caller's own, if it is given. */
export async function opened(options: Partial<PoolOptions> = {}) {
  const dataDir = options.dataDir ?? (await newFolder());
  const pool = newPool({ ...options, dataDir });
  pools.push(pool);
  return { dataDir, pool, backend: await pool.get(ada, config) };
}

async function newFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "skein-backend-")));
  folders.push(folder);
  return folder;
}
