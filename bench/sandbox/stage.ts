// The tools for a scenario: an engine, servers on it that belong together, and new users.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";
import type { BackendConfig } from "../../src/agent/core/backend.ts";
import { createMemoryStores } from "../../src/engine/stores/memory/index.ts";
import { randomId } from "../../src/lib/random-id.ts";
import type { Owner } from "../../src/protocol/ids.ts";
import { sandboxId } from "../../src/sandbox/docker/identity.ts";
import { createLedger } from "../../src/sandbox/ledger.ts";
import type { ProcessBackends } from "../../src/sandbox/pool.ts";
import { newPool } from "../../test/support/pool.ts";
import type { BenchEngine, ImageName } from "./engine.ts";
import type { Row } from "./table.ts";
import { plainWay, skeinWay, type Way } from "./ways.ts";

const NAME = "bench";
const HELPER_MS = 30_000;
const LOOK_AGAIN_MS = 20;

export interface Scenario {
  readonly name: string;
  run(stage: Stage): AsyncIterable<Row>;
}

/** The two ways to work in the same container. */
export interface Ways {
  readonly plain: Way;
  readonly skein: Way;
}

/** The settings that a server of this benchmark needs. */
export interface Surroundings {
  readonly host: string | undefined;
  readonly deployment: string;
  readonly dataDir: string;
}

export interface Stage {
  readonly docker: Docker;
  readonly surroundings: Surroundings;
  readonly rounds: number;
  /** Everything ends when this signal aborts. */
  readonly signal: AbortSignal;
  /** Returns a backend with default settings. */
  config(image: ImageName): Promise<BackendConfig>;
  newOwner(): Owner;
  /** Returns another server, which is closed at the end. */
  newServer(): ProcessBackends;
  /** Returns a name for a container and a volume that Skein does not manage. Both are removed at the end. */
  plainName(): string;
  /** Returns a sandbox that is running and has been used. */
  sandbox(image: ImageName): Promise<Ways>;
  /** Resolves once everything exists that is created alongside the first use of this container. */
  settled(container: string, image: ImageName): Promise<void>;
}

/** Runs `work` on a stage, and removes everything afterwards. */
export async function withStage(
  engine: BenchEngine,
  options: Pick<Stage, "rounds" | "signal">,
  work: (stage: Stage) => Promise<void>,
): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), "skein-bench-"));
  const surroundings = { host: engine.host, deployment: `bench-${randomId()}`, dataDir };
  const stores = createMemoryStores();
  const servers: ProcessBackends[] = [];
  const newServer = () => {
    const server = serverOf(surroundings, createLedger(stores.documents));
    servers.push(server);
    return server;
  };
  try {
    await work(createStage(engine, { ...options, surroundings, newServer }));
  } finally {
    await Promise.allSettled(servers.map((server) => server.close()));
    await stores.close();
    await clear(engine.docker, surroundings).finally(() => rm(dataDir, { recursive: true, force: true }));
  }
}

/** The caller closes it. */
export function serverOf(
  { host, deployment, dataDir }: Surroundings,
  sandboxes = createLedger(createMemoryStores().documents),
): ProcessBackends {
  const caps = { total: 100, tenant: 100 };
  return newPool({
    ...{ dataDir, sandboxes },
    docker: {
      engines: [{ name: "default", host }],
      deployment,
      firewall: "managed",
      egress: {},
      isShared: false,
      caps,
      sweepMs: 20_000,
    },
  });
}

export const containerOf = (deployment: string, owner: Owner) => sandboxId(deployment, { owner, name: NAME });

type Made = Pick<Stage, "rounds" | "signal" | "surroundings" | "newServer">;

function createStage(engine: BenchEngine, made: Made): Stage {
  const { docker } = engine;
  const { signal, surroundings, newServer } = made;
  const images = new Map<ImageName, Promise<string>>();
  const sandboxes = new Map<ImageName, Promise<Ways>>();
  let owners = 0;
  let plains = 0;

  const config = async (name: ImageName) => {
    const loading = images.get(name) ?? engine.image(name);
    images.set(name, loading);
    return { type: "docker", name: NAME, image: await loading };
  };
  const newOwner = () => ({ tenant: "bench", user: `user-${++owners}` });
  const settled = async (container: string, image: ImageName) => {
    if (image === "debian") await helperIn(docker, container, signal);
  };
  const open = async (image: ImageName): Promise<Ways> => {
    const owner = newOwner();
    const skein = skeinWay(await newServer().get(owner, await config(image)), signal);
    await skein.run("true");
    const container = containerOf(surroundings.deployment, owner);
    await settled(container, image);
    return { plain: plainWay(docker, container, signal), skein };
  };

  return {
    ...made,
    ...{ docker, config, newOwner, settled },
    plainName: () => `${surroundings.deployment}-plain-${++plains}`,
    sandbox(image) {
      const opened = sandboxes.get(image) ?? open(image);
      sandboxes.set(image, opened);
      return opened;
    },
  };
}

/** Resolves once the helper is running. Throws if it does not start in time. */
async function helperIn(docker: Docker, container: string, signal: AbortSignal): Promise<void> {
  for (const began = performance.now(); performance.now() - began < HELPER_MS; ) {
    const { Processes } = await docker.getContainer(container).top({ abortSignal: signal });
    if (Processes.some((process: readonly string[]) => process.at(-1)?.includes("skein-files"))) return;
    await sleep(LOOK_AGAIN_MS, undefined, { signal });
  }
  throw new Error("The helper for files does not start in the image `debian`.");
}

/** Removes everything that is left from this run. */
async function clear(docker: Docker, { deployment }: Surroundings): Promise<void> {
  for (const [key, value] of [
    ["label", `skein.deployment=${deployment}`],
    ["name", deployment],
  ] as const) {
    const filters = { [key]: [value] };
    const containers = await docker.listContainers({ all: true, filters });
    await Promise.all(containers.map(({ Id }) => docker.getContainer(Id).remove({ force: true })));
    const { Volumes } = await docker.listVolumes({ filters: JSON.stringify(filters) });
    await Promise.all((Volumes ?? []).map(({ Name }) => docker.getVolume(Name).remove()));
  }
}
