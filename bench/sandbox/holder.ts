// A server's pool in a separate process, for measuring its memory. It opens sandboxes for the owners that it receives,
// uses each once, and answers. When its parent disconnects for any reason, it stops the sandboxes and ends.

import type { BackendConfig } from "../../src/agent/core/backend.ts";
import type { Owner } from "../../src/protocol/ids.ts";
import { type Surroundings, serverOf } from "./stage.ts";
import { skeinWay } from "./ways.ts";

export interface HolderOptions extends Surroundings {
  readonly config: BackendConfig;
}

const { signal } = new AbortController();
// The parent writes this JSON.
const options = JSON.parse(process.argv[2] ?? "") as HolderOptions;
const server = serverOf(options);

async function use(owner: Owner): Promise<void> {
  const way = skeinWay(await server.get(owner, options.config), signal);
  await way.write("folder/file", Buffer.alloc(4096, "abcdefg\n"));
  await way.read("folder/file");
  await way.list("folder");
  await way.run("true");
}

let closing: Promise<void> | undefined;
async function end(): Promise<void> {
  closing ??= server.close();
  await closing.finally(() => process.exit());
}

process.on("message", async (question: string | { owners: readonly Owner[] }) => {
  if (typeof question === "string") return; // for the probe
  try {
    await Promise.all(question.owners.map(use));
    process.send?.("opened");
  } catch (error) {
    if (!closing) console.error(error);
    await end();
  }
});
process.channel?.ref(); // the probe lets a process end that has nothing else to do
process.once("disconnect", end);
// Only the parent reacts to these signals.
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(name, () => {});
