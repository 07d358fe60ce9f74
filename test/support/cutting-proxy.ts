// A way to a Redis on which connections break: what was asked arrives, and the answer does not.

import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export interface CuttingProxy {
  readonly port: number;
  /** How often a connection was cut with an answer on its way. */
  readonly cuts: number;
  /** From now on the answer to every `n`th script is lost, and its connection with it; 0: none. */
  cutEvery(n: number): void;
  /** Cuts all connections now. */
  cutAll(): void;
  close(): Promise<void>;
}

/** A proxy before `port` of this machine; closed by the caller. */
export async function cuttingProxy(port: number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  let every = 0;
  let asked = 0;
  let cuts = 0;
  const server = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    const cut = () => {
      for (const socket of [client, upstream]) socket.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", cut);
      socket.on("close", () => {
        sockets.delete(socket);
        cut();
      });
    }
    let isLost = false;
    client.on("data", (chunk) => {
      isLost ||= every > 0 && chunk.includes("evalsha") && ++asked % every === 0;
      upstream.write(chunk);
    });
    upstream.on("data", (chunk) => {
      if (!isLost) return void client.write(chunk);
      cuts++;
      cut();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || !address) throw new Error("A server that listens has an address.");
  const cutAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: address.port,
    get cuts() {
      return cuts;
    },
    cutEvery(n) {
      every = n;
    },
    cutAll,
    async close() {
      cutAll();
      server.close();
      await once(server, "close");
    },
  };
}
