// Pools of Docker backends on the engine of a test file: each is a server of its own, as far as the engine can tell.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import type { BackendConfig, BackendStatus } from "../../../src/agent/core/backend.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { randomId } from "../../../src/lib/random-id.ts";
import { createLedger } from "../../../src/sandbox/ledger.ts";
import type { PoolOptions } from "../../../src/sandbox/pool.ts";
import { SOLE_ENGINE } from "../../../src/sandbox/sandbox-records.ts";
import type { Engine, TestImage } from "../../support/engine.ts";
import { newPool } from "../../support/pool.ts";

export const ada = { tenant: "acme", user: "ada" };
export const bob = { tenant: "acme", user: "bob" };

const closers: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

export interface World {
  readonly dataDir: string;
  readonly deployment: string;
  readonly sandboxes: PoolOptions["sandboxes"];
}

/** What the servers of one deployment share. */
export async function newWorld(): Promise<World> {
  const dataDir = await mkdtemp(join(tmpdir(), "skein-docker-"));
  closers.push(() => rm(dataDir, { recursive: true, force: true }));
  const stores = createMemoryStores();
  closers.push(() => stores.close());
  return { dataDir, deployment: `test-${randomId()}`, sandboxes: createLedger(stores.documents) };
}

export interface Server {
  readonly pool: ReturnType<typeof newPool>;
  /** The reported states of each backend, in order. */
  readonly states: BackendStatus[];
  /** The details and the message of each warning in the log. */
  readonly warnings: object[];
}

/** Closed at the end of the file at the latest. */
export function newServer(
  { host }: Pick<Engine, "host">,
  { dataDir, deployment, sandboxes }: World,
  docker: Partial<PoolOptions["docker"]> = {},
  more: Partial<PoolOptions> = {},
): Server {
  const states: BackendStatus[] = [];
  const warnings: object[] = [];
  const warn = (details: object, message: string) => void warnings.push({ ...details, message });
  const pool = newPool({
    ...more,
    ...{ dataDir, sandboxes, logger: { info() {}, warn, error() {} } },
    docker: {
      ...{
        engines: [{ name: SOLE_ENGINE, host }],
        deployment,
        firewall: "managed",
        egress: {},
        isShared: false,
        caps: { total: 100, tenant: 100 },
        sweepMs: 100,
      },
      ...docker,
    },
    onStatus: (_, status) => states.push(status),
  });
  closers.push(() => pool.close());
  return { pool, states, warnings };
}

export async function configOf(engine: Engine, image: TestImage, more: object = {}): Promise<BackendConfig> {
  return {
    type: "docker",
    name: "code",
    image: await engine.image(image),
    memory: "128m",
    tmp: "16m",
    disk: "64m",
    ...more,
  };
}
