// A database in a folder of its own for each test of a file, and what tests keep in it.

import { mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach } from "vitest";
import { tokenHash } from "../../../src/agent/core/deferred-calls.ts";
import type { HttpTool } from "../../../src/agent/tools/http/registration.ts";
import { ADA } from "./fixture.ts";

export const HOUR = 3_600_000;
export const MIB = 1024 * 1024;

export const BOX = {
  id: "sb_1",
  owner: ADA,
  name: "work",
  engine: "default",
  keep: { running: HOUR, container: 2 * HOUR, files: null },
};

export const CALL = {
  ...{ owner: ADA, thread_id: "t", run_id: "run_1", call_id: "call_1", tool: "weather" },
  ...{ token_hash: tokenHash("token"), expires_at: "2026-11-21T10:30:00.000Z" },
};

export const WEATHER: HttpTool = {
  ...{ name: "weather", description: "x", parameters: { type: "object" }, annotations: {}, agents: ["*"] },
  ...{ callback_url: "https://t.example/", headers: {}, timeout_ms: 1, idempotent: true },
  ...{ secret: "whsec_c2VjcmV0", created_at: "2026-11-21T10:00:00.000Z" },
};

export function temporaryDatabase() {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "skein-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const path = () => join(folder, "skein.db");

  return {
    dataDir: () => folder,
    path,
    /** The file as it is while it is not open. */
    inFile<T>(look: (file: DatabaseSync) => T): T {
      const file = new DatabaseSync(path());
      try {
        return look(file);
      } finally {
        file.close();
      }
    },
  };
}

/** How often this process has a file open. */
export const descriptorsOf = (path: string): number =>
  readdirSync("/proc/self/fd").filter((each) => targetOf(`/proc/self/fd/${each}`) === path).length;

/** Undefined when the link has gone meanwhile. */
function targetOf(link: string): string | undefined {
  try {
    return readlinkSync(link);
  } catch {
    return undefined;
  }
}
