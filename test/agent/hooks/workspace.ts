// A real workspace with files in it, for as long as the test takes.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Backend } from "../../../src/agent/core/backend.ts";
import { newPool } from "../../support/pool.ts";

export async function workspace(files: Readonly<Record<string, string | Uint8Array>>): Promise<Backend> {
  const dataDir = await mkdtemp(join(tmpdir(), "skein-hooks-"));
  const pool = newPool({ dataDir });
  onTestFinished(async () => {
    await pool.close();
    await rm(dataDir, { recursive: true, force: true });
  });
  const backend = await pool.get({ tenant: "acme", user: "ada" }, { type: "local", name: "test" });
  const { signal } = new AbortController();
  for (const [path, content] of Object.entries(files))
    await backend.write(path, Buffer.from(content), signal);
  return backend;
}
