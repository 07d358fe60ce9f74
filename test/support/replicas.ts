// Two servers on one store and one folder, which the tests of a file share: a test that ends one costs one start, not two.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFailed } from "vitest";
import { killed, lastingSkein, type ServerProcess, serving } from "./process.ts";
import type { SharedStore } from "./shared-stores.ts";

/** What the model of an agent says, and more keys of the agent. */
export interface ScriptedAgent {
  readonly script: string;
  readonly options?: object;
}

export interface Replicas {
  /** Those that other tests have left, and a new one for each that has exited. After a test that failed: on a database of their own. */
  two(): Promise<{ readonly one: ServerProcess; readonly other: ServerProcess }>;
  close(): Promise<void>;
}

/**
 * With leases of two seconds, and `settings` as more of `server.yaml`. Closed by the caller. Without a store there are none:
 * `needing` passes over the tests that want them.
 */
export function replicasOn(
  store: Pick<SharedStore, "kind" | "database"> | undefined,
  agents: Readonly<Record<string, ScriptedAgent>>,
  settings: object = {},
): Replicas {
  let dir: string | undefined;
  const running = new Set<ServerProcess>();

  const create = async () => {
    if (!store) throw new Error("There is no store to run replicas on.");
    const { kind, database } = store;
    const made = await mkdtemp(join(tmpdir(), "skein-"));
    const config = { store: kind, [kind]: { url: await database(), lease: "2s" }, ...settings };
    await writeFile(join(made, "server.yaml"), JSON.stringify(config));
    await writeFile(join(made, "agents.yaml"), JSON.stringify({ agents: await writeScripts(made, agents) }));
    dir = made;
    return made;
  };
  const start = async (folder: string) => {
    const process = lastingSkein(["serve"], {
      PORT: "0",
      DATA_DIR: join(folder, "data"),
      AGENTS_FILE: join(folder, "agents.yaml"),
      CONFIG_FILE: join(folder, "server.yaml"),
    });
    try {
      const server = await serving(process);
      running.add(server);
      void server.exited.then(() => running.delete(server));
      return server;
    } catch (error) {
      await killed(process);
      throw error;
    }
  };
  const close = async () => {
    await Promise.all([...running].map(killed));
    if (dir !== undefined) await rm(dir, { recursive: true, force: true });
    dir = undefined;
  };
  return {
    async two() {
      // It may leave one that is stopped, or at work.
      onTestFailed(close);
      const folder = dir ?? (await create());
      const [one, other] = [...running];
      return { one: one ?? (await start(folder)), other: other ?? (await start(folder)) };
    },
    close,
  };
}

/** The agents, as in `agents.yaml`. */
async function writeScripts(folder: string, agents: Readonly<Record<string, ScriptedAgent>>) {
  const written = Object.entries(agents).map(async ([name, { script, options }]) => {
    const file = join(folder, `${name}.yaml`);
    await writeFile(file, script);
    return [name, { model: `scripted:${file}`, ...options }] as const;
  });
  return Object.fromEntries(await Promise.all(written));
}
