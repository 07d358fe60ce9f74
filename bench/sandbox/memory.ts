import type { Memory } from "../probe.ts";
import type { ImageName } from "./engine.ts";
import { type Ask, withHolder } from "./holding.ts";
import { pssOf } from "./pss.ts";
import { containerOf, type Scenario, type Stage } from "./stage.ts";
import { middle, number, type Row } from "./table.ts";

const WARM_UP = 3;
const SANDBOXES = 10;
const MIB = 1024 ** 2;

/** Measures the memory of idle sandboxes that were used once, in a separate server, after a full collection. */
export const memory = (image: ImageName): Scenario => ({
  name: `${image}: memory of an idle sandbox`,
  async *run(stage) {
    yield* await withHolder(stage, await stage.config(image), (ask) => measure(stage, image, ask));
  },
});

async function measure(stage: Stage, image: ImageName, ask: Ask): Promise<Row[]> {
  // The first sandboxes also load everything that all of them share.
  await open(stage, image, ask, WARM_UP);
  const before = await ask<Memory>("memory");
  const containers = await open(stage, image, ask, SANDBOXES);
  const after = await ask<Memory>("memory");
  const each = (key: keyof Memory) => number((after[key] - before[key]) / SANDBOXES / 1024);
  const groups = await Promise.all(containers.map((container) => memoryOf(stage, container)));
  const pss = await Promise.all(containers.map((container) => pssOf(stage.docker, container)));
  return [
    { figure: "MiB of the container, as the engine counts it", skein: middle(groups) },
    { figure: "MiB of its processes and its shim (PSS)", skein: middle(pss.map((bytes) => bytes / MIB)) },
    { figure: "KiB of heap in the server", skein: each("heap") },
    { figure: "KiB of RSS in the server", skein: each("rss") },
  ];
}

/** Returns the containers once all of their parts have started. */
async function open(stage: Stage, image: ImageName, ask: Ask, count: number): Promise<string[]> {
  const owners = Array.from({ length: count }, stage.newOwner);
  await ask<string>({ owners });
  const containers = owners.map((owner) => containerOf(stage.surroundings.deployment, owner));
  for (const container of containers) await stage.settled(container, image);
  return containers;
}

/** Returns the memory in MiB, without the part that the system can reclaim. */
async function memoryOf({ docker }: Stage, container: string): Promise<number> {
  const found = await docker.getContainer(container).stats({ stream: false, "one-shot": true });
  const { usage, stats } = found.memory_stats;
  return (usage - (stats.inactive_file ?? stats.total_inactive_file ?? 0)) / MIB;
}
