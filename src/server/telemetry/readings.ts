// Metrics that are read on request: the current state of the process and the deployment.

import { Gauge, type Registry } from "prom-client";
import type { QueueStats } from "../../agent/core/stores.ts";
import { sharedFor } from "../../lib/async.ts";

export interface Readings {
  runs(): { readonly active: number; readonly slots: number };
  /** Returns statistics about the queue of the whole deployment. */
  waiting(): Promise<QueueStats>;
  /** Returns the number for the whole deployment. Undefined if the store cannot count them. */
  readonly interrupted?: (() => Promise<number>) | undefined;
  streams(): { readonly open: number; readonly most: number };
  /** Returns the external dependencies. `isUp` is true if the dependency works. */
  dependencies(): Promise<readonly { readonly name: string; readonly isUp: boolean }[]>;
  /** The maximum number of sandboxes. */
  readonly sandboxes: number;
  /** Returns the sizes of a database file. */
  database?(): Promise<{ readonly bytes: number; readonly walBytes: number }>;
  readonly version: string;
  /** The number of this process, if several processes share one page. Becomes a label. */
  readonly worker?: number;
}

/** How long a value of the whole deployment is reused, in ms, because Prometheus may ask each process for it. */
const FRESH_MS = 1_000;

/** Leaves out values that cannot be read. */
export function registerReadings(registry: Registry, readings: Readings): void {
  const registers = [registry];
  const gauge = (name: string, help: string, read: () => number | Promise<number>) =>
    new Gauge({
      name: `skein_${name}`,
      help,
      registers,
      async collect() {
        try {
          this.set(await read());
        } catch {
          this.remove();
        }
      },
    });

  gauge("runs_active", "Runs that this process executes.", () => readings.runs().active);
  gauge("run_slots", "Maximum runs that this process executes at a time.", () => readings.runs().slots);
  gauge("streams_open", "Open event streams.", () => readings.streams().open);
  gauge("streams_max", "Maximum open event streams (`limits.streams`).", () => readings.streams().most);
  gauge("sandboxes_max", "Maximum sandboxes (`backends.docker.sandboxes`).", () => readings.sandboxes);
  const waiting = sharedFor(FRESH_MS, readings.waiting);
  const oldest = async () => (await waiting()).oldestMs / 1000;
  gauge(
    "runs_waiting",
    "Threads of the deployment whose run waits for a process.",
    async () => (await waiting()).threads,
  );
  gauge("runs_oldest_wait_seconds", "Longest time that a run has been waiting for a process.", oldest);
  if (readings.interrupted)
    gauge(
      "threads_interrupted",
      "Threads of the deployment that wait for an answer.",
      sharedFor(FRESH_MS, readings.interrupted),
    );
  if (readings.database) {
    const sizes = sharedFor(FRESH_MS, readings.database);
    gauge("sqlite_bytes", "Size of the database file in bytes.", async () => (await sizes()).bytes);
    gauge("sqlite_wal_bytes", "Size of the write-ahead log in bytes.", async () => (await sizes()).walBytes);
  }
  new Gauge({
    name: "skein_dependency_up",
    help: "1 if the external dependency works, otherwise 0.",
    labelNames: ["dependency"],
    registers,
    async collect() {
      this.reset();
      for (const { name, isUp } of await readings.dependencies())
        this.set({ dependency: name }, isUp ? 1 : 0);
    },
  });
  new Gauge({
    name: "skein_build_info",
    help: "Always 1. The labels are the versions of the server and of Node.",
    labelNames: ["version", "node"],
    registers,
  }).set({ version: readings.version, node: process.version }, 1);
}
