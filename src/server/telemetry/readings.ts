// Metrics that are read when they are asked for: what the process and the deployment are like now.

import { Gauge, type Registry } from "prom-client";
import type { QueueStats } from "../../agent/core/stores.ts";
import { sharedFor } from "../../lib/async.ts";

export interface Readings {
  runs(): { readonly active: number; readonly slots: number };
  /** Of the whole deployment. */
  waiting(): Promise<QueueStats>;
  /** Of the whole deployment. Absent where that cannot be counted. */
  readonly interrupted?: (() => Promise<number>) | undefined;
  streams(): { readonly open: number; readonly most: number };
  /** Whether each part of the outside world answers. */
  dependencies(): Promise<readonly { readonly name: string; readonly isUp: boolean }[]>;
  /** The most sandboxes. */
  readonly sandboxes: number;
  /** Of a database in a file. */
  database?(): Promise<{ readonly bytes: number; readonly walBytes: number }>;
  readonly version: string;
  /** Of several processes that answer as one: becomes a label. */
  readonly worker?: number;
}

/** How long a value counts that is the whole deployment's, in ms: each process may be asked for it. */
const FRESH_MS = 1_000;

/** A value that cannot be read is left out of the answer. */
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
  gauge("run_slots", "Runs that this process may execute at a time.", () => readings.runs().slots);
  gauge("streams_open", "Event streams that are open.", () => readings.streams().open);
  gauge("streams_max", "Event streams that may be open (`limits.streams`).", () => readings.streams().most);
  gauge("sandboxes_max", "Sandboxes that may run (`backends.docker.sandboxes`).", () => readings.sandboxes);
  const waiting = sharedFor(FRESH_MS, readings.waiting);
  const oldest = async () => (await waiting()).oldestMs / 1000;
  gauge(
    "runs_waiting",
    "Threads whose run no process executes, of the whole deployment.",
    async () => (await waiting()).threads,
  );
  gauge("runs_oldest_wait_seconds", "How long the one waits that waits longest.", oldest);
  if (readings.interrupted)
    gauge(
      "threads_interrupted",
      "Threads that wait for an answer, of the whole deployment.",
      sharedFor(FRESH_MS, readings.interrupted),
    );
  if (readings.database) {
    const sizes = sharedFor(FRESH_MS, readings.database);
    gauge("sqlite_bytes", "Bytes of the database.", async () => (await sizes()).bytes);
    gauge("sqlite_wal_bytes", "Bytes of its write-ahead log.", async () => (await sizes()).walBytes);
  }
  new Gauge({
    name: "skein_dependency_up",
    help: "1 while a part of the outside world answers.",
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
    help: "Always 1; the labels say what runs.",
    labelNames: ["version", "node"],
    registers,
  }).set({ version: readings.version, node: process.version }, 1);
}
