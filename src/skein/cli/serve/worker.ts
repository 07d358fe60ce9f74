// A worker of `skein serve --workers N`: its calls to the primary process, and its replies.

import cluster from "node:cluster";
import type { Socket } from "node:net";
import type { MetricsFormat, Siblings } from "../../app/siblings.ts";
import { createCalls } from "./calls.ts";
import {
  CONNECTION,
  isLike,
  type PrimaryMethods,
  SEAT,
  type Seat,
  TAKEN,
  type WorkerMethods,
} from "./protocol.ts";
import { withoutPort } from "./taken.ts";

export interface Worker extends Siblings {
  /** Reports to the primary that this process accepts connections. */
  serves(): Promise<void>;
  /** Disconnects from the primary, so this process can exit. */
  leave(): void;
}

/** Returns undefined in a process that was not forked as a worker. */
export function asWorker(): Worker | undefined {
  const text = process.env[SEAT];
  delete process.env[SEAT];
  if (!cluster.isWorker || !text) return undefined;
  const { number, server: id, address } = JSON.parse(text) as Seat;
  let serve: (socket: Socket) => void = (socket) => socket.destroy();
  let read: (format: MetricsFormat) => Promise<string> = async () => "";
  // The process ends when its channel closes, so no call waits for a message that cannot be sent.
  const send = (message: object) =>
    process.connected && process.send?.(message, undefined, undefined, () => {});
  const calls = createCalls<PrimaryMethods>(send, {
    metrics: (format: MetricsFormat) => read(format),
  } satisfies WorkerMethods);
  process.on("message", (message, socket) => {
    if (!isLike(message, CONNECTION)) return calls.receive(message);
    send(TAKEN);
    // The socket is missing if its client has disconnected.
    if (socket) serve(socket as Socket);
  });
  return {
    number,
    async listen(server) {
      server.addHook("preClose", () => calls.ask("leaves", true));
      serve = await withoutPort(server);
      server.log.info(`Server listening at ${address}`);
      return address;
    },
    metricsOfOthers: (format) => calls.ask("metricsOfOthers", format),
    shareMetrics(own) {
      read = own;
    },
    machine: { id, isOneUser: (owner) => calls.ask("isOneUser", owner) },
    serves: () => calls.ask("serves", true),
    leave: () => cluster.worker?.disconnect(),
  };
}
