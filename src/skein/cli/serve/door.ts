// The port of a server with workers. The first process holds it for as long as the server lives and gives each connection to one
// of the workers, so that none is refused when all of them have died.

import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { atMostEvery } from "../../../lib/at-most-every.ts";
import type { Logger } from "../../../lib/logger.ts";
import { addressesOf, BACKLOG, type ListenAddress, listenFailure } from "../../app/listening.ts";

export interface Taker {
  /** Resolves with whether the worker has the connection: `false` when it has ended without. Never throws. */
  take(socket: Socket): Promise<boolean>;
}

export interface Door {
  /** As a URL. */
  readonly address: string;
  /** `taker` gets connections in turn with the others, each once it has the one before. */
  admit(taker: Taker): void;
  /** `taker` gets no other connection. */
  dismiss(taker: Taker): void;
  /** The port is free once this has returned. */
  close(): void;
}

/** Connections that wait for a worker. Past them, new ones are closed. */
const MOST_WAITING = 4096;
const LOG_MS = 10_000;

/** `answer` gets the connections that come while no worker is admitted. Throws `unavailable` when the port is taken. */
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

/** As a client of this machine writes it. */
function urlOf({ address, family, port }: AddressInfo): string {
  if (family === "IPv6") return `http://[${address}]:${port}`;
  return `http://${address === "0.0.0.0" ? "127.0.0.1" : address}:${port}`;
}

/** Connections that wait, and workers that wait for one. */
function createLine(answer: (socket: Socket) => void) {
  const admitted = new Set<Taker>();
  /** In the order in which they became free. */
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
        // The worker has a descriptor of its own.
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
