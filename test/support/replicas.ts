// Two servers on one store and one folder, which the tests of a file share: a test that ends one costs one start, not two.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFailed } from "vitest";
import { killed, lastingSkein, type ServerProcess, serving } from "./process.ts";
import { MAIN } from "./program.ts";
import type { SharedStore } from "./shared-stores.ts";
import { contradictionsIn, placeOf, type StorePlace } from "./store-check.ts";

/** What the model of an agent says, and more keys of the agent. */
export interface ScriptedAgent {
  readonly script: string;
  readonly options?: object;
}

export interface Replicas {
  /** Those that other tests have left, and a new one for each that has exited. After a test that failed: on a database of their own. */
  two(): Promise<{ readonly one: ServerProcess; readonly other: ServerProcess }>;
  /** Fails when what they leave in the store contradicts itself. */
  close(): Promise<void>;
}

type Role = "one" | "other";

/**
 * With leases of two seconds, and `settings` as more of `server.yaml`; `mains` are the programs that they run, this one unless
 * given. Closed by the caller. Without a store there are none: `needing` passes over the tests that want them.
 */
export function replicasOn(
  store: Pick<SharedStore, "kind" | "database"> | undefined,
  agents: Readonly<Record<string, ScriptedAgent>>,
  settings: object = {},
  mains: Readonly<Record<Role, string>> = { one: MAIN, other: MAIN },
): Replicas {
  let dir: string | undefined;
  let place: StorePlace | undefined;
  const running = new Map<Role, ServerProcess>();

  const create = async () => {
    if (!store) throw new Error("There is no store to run replicas on.");
    const { kind, database } = store;
    const made = await mkdtemp(join(tmpdir(), "skein-"));
    const url = await database();
    place = placeOf(kind, url);
    const config = { store: kind, [kind]: { url, lease: "2s" }, ...settings };
    await writeFile(join(made, "server.yaml"), JSON.stringify(config));
    await writeAgents(made, agents);
    dir = made;
    return made;
  };
  const start = async (folder: string, role: Role) => {
    const process = lastingSkein(["serve"], settingsIn(folder), undefined, mains[role]);
    try {
      const server = await serving(process);
      running.set(role, server);
      void server.exited.then(() => running.delete(role));
      return server;
    } catch (error) {
      await killed(process);
      throw error;
    }
  };
  const end = async () => {
    await Promise.all([...running.values()].map(killed));
    if (dir !== undefined) await rm(dir, { recursive: true, force: true, maxRetries: 10 });
    dir = undefined;
    place = undefined;
  };
  return {
    async two() {
      // It may leave one that is stopped, or at work.
      onTestFailed(end);
      const folder = dir ?? (await create());
      const server = async (role: Role) => running.get(role) ?? (await start(folder, role));
      return { one: await server("one"), other: await server("other") };
    },
    async close() {
      await Promise.all([...running.values()].map(killed));
      const found = place ? await contradictionsIn(place) : [];
      await end();
      expect(found).toEqual([]);
    },
  };
}

/** The environment of a server whose files, and data, are in the folder. */
export const settingsIn = (folder: string) => ({
  PORT: "0",
  DATA_DIR: join(folder, "data"),
  AGENTS_FILE: join(folder, "agents.yaml"),
  CONFIG_FILE: join(folder, "server.yaml"),
});

/** The `agents.yaml` of the folder, and what their models say. */
export async function writeAgents(
  folder: string,
  agents: Readonly<Record<string, ScriptedAgent>>,
): Promise<void> {
  const written = Object.entries(agents).map(async ([name, { script, options }]) => {
    const file = join(folder, `${name}.yaml`);
    await writeFile(file, script);
    return [name, { model: `scripted:${file}`, ...options }] as const;
  });
  const file = JSON.stringify({ agents: Object.fromEntries(await Promise.all(written)) });
  await writeFile(join(folder, "agents.yaml"), file);
}
