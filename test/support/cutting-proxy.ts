// A proxy to a server that breaks connections: the request arrives, and the answer does not; or they stay open, and
// nothing passes any more.

import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export interface CuttingProxy {
  readonly port: number;
  /** How many connections it has taken. */
  readonly connections: number;
  /** How often data came from the server. */
  readonly answers: number;
  /** How often a connection was cut with an answer on its way. */
  readonly cuts: number;
  /** From now on the answer to every `n`th `call`, a script of Redis unless given, is lost, and its connection with it; 0: none. */
  cutEvery(n: number, call?: RegExp): void;
  /** From now on nothing passes on the connections there are, in either direction; no end of one passes either. */
  silence(): void;
  /** Nothing of the answers passes on the next connection. */
  silenceNext(): void;
  /** From now on a connection on which more than `bytes` have passed, in both directions, passes nothing on until `release`. */
  holdAfter(bytes: number): void;
  release(): void;
  /** Lets one byte pass of what is held back. */
  drip(): void;
  /** Cuts all connections now. */
  cutAll(): void;
  /** The hashes of Redis's scripts that were asked for since this was called. */
  watch(): ReadonlySet<string>;
  /** Resolves when the script with this hash is asked for. That does not arrive, and there is no way to the server from then on. */
  closeAt(sha: string): Promise<void>;
  /** From now on there is none. */
  shut(): void;
  /** There is a way again. */
  reopen(): void;
  close(): Promise<void>;
}

const SCRIPT = /evalsha/;

/** A proxy before `port` of this machine; closed by the caller. */
export async function cuttingProxy(port: number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  const silences = new Set<() => void>();
  let mostBytes = Number.POSITIVE_INFINITY;
  const held: { readonly to: Socket; readonly chunk: Buffer }[] = [];
  let every = 0;
  let counted = SCRIPT;
  let asked = 0;
  let cuts = 0;
  let connections = 0;
  let answers = 0;
  let isNextSilent = false;
  let isClosed = false;
  let watched = new Set<string>();
  let trap: { readonly sha: string; readonly caught: () => void } | undefined;
  /** Whether commands may pass on to the server. */
  const passes = (chunk: Buffer) => {
    for (const [, sha = ""] of chunk.toString("latin1").matchAll(/evalsha\r\n\$40\r\n(\w{40})/g)) {
      watched.add(sha);
      if (sha === trap?.sha) isClosed = true;
    }
    return !isClosed;
  };
  const server = createServer((client) => {
    connections++;
    if (isClosed) return void client.destroy();
    const upstream = connect(port, "127.0.0.1");
    let isSilent = isNextSilent;
    isNextSilent = false;
    silences.add(() => {
      isSilent = true;
    });
    const cut = () => {
      if (isSilent) return;
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
    let bytes = 0;
    const pass = (to: Socket, chunk: Buffer) => {
      bytes += mostBytes === Number.POSITIVE_INFINITY ? 0 : chunk.length;
      if (bytes <= mostBytes) to.write(chunk);
      else held.push({ to, chunk });
    };
    let isLost = false;
    client.on("data", (chunk) => {
      if (!passes(chunk)) {
        cutAll();
        trap?.caught();
        return;
      }
      isLost ||= every > 0 && counted.test(chunk.toString("latin1")) && ++asked % every === 0;
      pass(upstream, chunk);
    });
    upstream.on("data", (chunk) => {
      answers++;
      if (isSilent) return;
      if (!isLost) return pass(client, chunk);
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
    get connections() {
      return connections;
    },
    get answers() {
      return answers;
    },
    get cuts() {
      return cuts;
    },
    cutEvery(n, call = SCRIPT) {
      every = n;
      counted = call;
    },
    silence() {
      for (const fallSilent of silences) fallSilent();
    },
    silenceNext() {
      isNextSilent = true;
    },
    holdAfter(most) {
      mostBytes = most;
    },
    release() {
      mostBytes = Number.POSITIVE_INFINITY;
      for (const { to, chunk } of held.splice(0)) to.write(chunk);
    },
    drip() {
      const first = held.shift();
      if (!first) return;
      first.to.write(first.chunk.subarray(0, 1));
      if (first.chunk.length > 1) held.unshift({ to: first.to, chunk: first.chunk.subarray(1) });
    },
    cutAll,
    watch() {
      watched = new Set();
      return watched;
    },
    closeAt: (sha) =>
      new Promise((resolve) => {
        trap = { sha, caught: resolve };
      }),
    shut() {
      isClosed = true;
      cutAll();
    },
    reopen() {
      trap = undefined;
      isClosed = false;
    },
    async close() {
      cutAll();
      server.close();
      await once(server, "close");
    },
  };
}
