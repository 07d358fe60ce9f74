// The way to npm's registry out of a network that has none, as the tests' own engines are in: a proxy on a port of it, whose
// is asked of the registry by a process in the network of this test run.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const RELAY = fileURLToPath(new URL("relay/main.ts", import.meta.url));

/** The caller closes it. */
export async function openRegistry(dir: string): Promise<{ url: string; close(): Promise<void> }> {
  const socket = join(dir, "registry.sock");
  // The parent of a test's process is vitest's, outside of the network.
  const args = ["--target", String(process.ppid), "--net", process.execPath, RELAY, socket];
  const relay = spawn("nsenter", args, { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(relay, "exit");
  const started = await Promise.race([once(relay.stdout, "data"), exited.then(() => undefined)]);
  if (!started) throw new Error("The relay to npm's registry has ended.");
  const server = createServer((client) => {
    const upstream = connect(socket);
    client.pipe(upstream).pipe(client);
    // A build that is cancelled leaves its connections.
    client.on("error", () => upstream.destroy());
    upstream.on("error", () => client.destroy());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || !address) throw new Error("A server that listens has an address.");
  return {
    url: `http://127.0.0.1:${address.port}`,
    async close() {
      server.close();
      relay.kill();
      await exited;
    },
  };
}
