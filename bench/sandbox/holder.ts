// A server's pool in a process of its own, for what it holds: opens sandboxes for the owners it is sent, uses each
// once, and answers. When its parent lets go of it, however that happens, it stops them and ends.

import type { BackendConfig } from "../../src/agent/core/backend.ts";
import type { Owner } from "../../src/protocol/ids.ts";
import { type Surroundings, serverOf } from "./stage.ts";
import { skeinWay } from "./ways.ts";

export interface HolderOptions extends Surroundings {
  readonly config: BackendConfig;
}

const { signal } = new AbortController();
// The parent's own words.
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
// They are the parent's to obey.
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(name, () => {});
