// The port of a server with workers. The primary process listens for the whole life of the server and passes each
// connection to a worker, so no connection is refused while all workers are down.

import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { atMostEvery } from "../../../lib/at-most-every.ts";
import type { Logger } from "../../../lib/logger.ts";
import { addressesOf, BACKLOG, type ListenAddress, listenFailure } from "../../app/listening.ts";

export interface Taker {
  /** Passes a connection to the worker. Returns false if the worker ended without accepting it. Never throws. */
  take(socket: Socket): Promise<boolean>;
}

export interface Door {
  /** The address as a URL. */
  readonly address: string;
  /** Adds a worker. Workers receive connections in turn, and each must accept one before it gets the next. */
  admit(taker: Taker): void;
  /** Removes a worker, which then receives no more connections. */
  dismiss(taker: Taker): void;
  /** The port is free when this returns. */
  close(): void;
}

/** The maximum number of connections that wait for a worker. Further connections are closed. */
const MOST_WAITING = 4096;
const LOG_MS = 10_000;

/**
 * Listens on the port. `answer` receives the connections that arrive while no worker is available. Throws `unavailable`
 * if the port is in use.
 */
export async function openDoor(
  place: ListenAddress,
  answer: (socket: Socket) => void,
  logger: Pick<Logger, "warn">,
): Promise<Door> {
  const line = createLine(answer);
  const tell = atMostEvery<Error>(LOG_MS, (err, count) =>
    logger.warn({ err, count }, "connections could not be accepted"),
  );
  const listen = async (host: string, port: number) => {
    const server = createServer({ pauseOnConnect: true, noDelay: true, allowHalfOpen: true }, line.enter);
    server.maxConnections = MOST_WAITING;
    server.listen({ host, port, backlog: BACKLOG });
    await once(server, "listening");
    server.on("error", tell);
    return server;
  };
  const servers: Server[] = [];
  try {
    const [first = place.host, ...others] = await addressesOf(place.host);
    const main = await listen(first, place.port);
    const bound = main.address() as AddressInfo;
    servers.push(main);
    for (const host of others)
      await listen(host, bound.port).then(
        (server) => servers.push(server),
        () => {},
      );
    return {
      ...line,
      address: urlOf(bound),
      close() {
        for (const server of servers) server.close();
      },
    };
  } catch (error) {
    throw listenFailure(place, error);
  }
}

/** Returns the URL for a client on this machine. */
function urlOf({ address, family, port }: AddressInfo): string {
  if (family === "IPv6") return `http://[${address}]:${port}`;
  return `http://${address === "0.0.0.0" ? "127.0.0.1" : address}:${port}`;
}

/** A queue of connections, and of free workers. */
function createLine(answer: (socket: Socket) => void) {
  const admitted = new Set<Taker>();
  /** In the order in which the workers became free. */
  const free = new Set<Taker>();
  const waiting: Socket[] = [];

  const dismiss = (taker: Taker) => {
    admitted.delete(taker);
    free.delete(taker);
    if (admitted.size === 0) for (const socket of waiting.splice(0)) answer(socket);
  };

  const serve = async (taker: Taker) => {
    while (admitted.has(taker)) {
      const socket = waiting.shift();
      if (!socket) {
        free.add(taker);
        return;
      }
      if (await taker.take(socket)) {
        // The worker has its own descriptor.
        socket.destroy();
      } else {
        dismiss(taker);
        enter(socket);
      }
    }
  };

  const enter = (socket: Socket) => {
    socket.on("error", () => {});
    if (admitted.size === 0) {
      answer(socket);
      return;
    }
    waiting.push(socket);
    const [next] = free;
    if (next && free.delete(next)) void serve(next);
  };

  return {
    enter,
    admit(taker: Taker) {
      admitted.add(taker);
      void serve(taker);
    },
    dismiss,
  };
}
