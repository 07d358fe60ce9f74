// A worker of `skein serve --workers N`: what it asks the primary process, and what it answers.

import cluster from "node:cluster";
import type { MetricsFormat, Siblings } from "../../app/siblings.ts";
import { createCalls } from "./calls.ts";
import { type PrimaryMethods, SEAT, type Seat, type WorkerMethods } from "./protocol.ts";

export interface Worker extends Siblings {
  /** Tells the primary that it is about to listen; then the port is free. */
  begins(): Promise<void>;
  /** Tells the primary that requests are accepted at `address`. */
  listens(address: string): Promise<void>;
  /** Gives up the channel, without which nothing holds this process any more. */
  leave(): void;
}

/** Undefined in a process that was not forked as a worker. */
export function asWorker(): Worker | undefined {
  const text = process.env[SEAT];
  delete process.env[SEAT];
  if (!cluster.isWorker || !text) return undefined;
  const { number, server } = JSON.parse(text) as Seat;
  let read: (format: MetricsFormat) => Promise<string> = async () => "";
  const calls = createCalls<PrimaryMethods>(
    // The process ends with its channel, so nothing waits for a message that cannot be sent.
    (message) => process.connected && process.send?.(message, undefined, undefined, () => {}),
    { metrics: (format: MetricsFormat) => read(format) } satisfies WorkerMethods,
  );
  process.on("message", calls.receive);
  return {
    number,
    metricsOfOthers: (format) => calls.ask("metricsOfOthers", format),
    shareMetrics(own) {
      read = own;
    },
    machine: { id: server, isOneUser: (owner) => calls.ask("isOneUser", owner) },
    begins: () => calls.ask("begins", true),
    listens: (address) => calls.ask("listens", address),
    leave: () => cluster.worker?.disconnect(),
  };
}
