// A server of several workers on a real store, and which of them does what.

import { expect } from "vitest";
import { type Configured, type ServerProcess, serveWith } from "./process.ts";
import type { SharedStore } from "./shared-stores.ts";
import { placeOf, type StorePlace } from "./store-check.ts";

export interface WorkersProcess extends ServerProcess {
  readonly dir: string;
  readonly store: StorePlace;
}

/** Two workers, once both accept requests. */
export async function serveTwo(
  shared: SharedStore | undefined,
  { config = {}, ...options }: Configured & { readonly config?: object } = {},
): Promise<WorkersProcess> {
  if (!shared) throw new Error("There was a store a moment ago.");
  const url = await shared.database();
  const store = { url, lease: "2s" };
  const server = await serveWith(
    { workers: 2, store: shared.kind, [shared.kind]: store, ...config },
    options,
  );
  // Each worker's line arrives in its own time, and a test may take its process from it.
  await expect.poll(() => pidsOf(server).size).toBe(2);
  return { ...server, store: placeOf(shared.kind, url) };
}

/** A line of its log. */
export interface LogLine {
  readonly msg: string;
  readonly pid: number;
  readonly worker?: number;
  readonly restart_ms?: number;
}

export const logOf = (server: ServerProcess): LogLine[] =>
  server
    .output()
    .split("\n")
    .flatMap((line) => (line.startsWith("{") ? [JSON.parse(line) as LogLine] : []));

/** The process of each worker, by its number: the last that listened. */
export const pidsOf = (server: ServerProcess): ReadonlyMap<number, number> =>
  new Map(
    logOf(server).flatMap(({ msg, worker = 0, pid }) =>
      msg.startsWith("Server listening") ? [[worker, pid] as const] : [],
    ),
  );

/** On a connection of its own: workers share out connections, not requests. */
export const ask = (url: string, init: RequestInit = {}) =>
  fetch(url, { ...init, headers: { connection: "close", ...init.headers } });

/** The values of a metric, by worker. */
export async function samplesOf(server: ServerProcess, metric: string): Promise<ReadonlyMap<number, number>> {
  const [name = "", labels = ""] = metric.split(/[{}]/);
  const page = await (await ask(`${server.url}/metrics`)).text();
  const lines = page.split("\n").filter((line) => line.startsWith(`${name}{`) && line.includes(labels));
  return new Map(
    lines.map((line) => [
      Number(/worker="(\d+)"/.exec(line)?.[1]),
      Number(line.slice(line.lastIndexOf(" ") + 1)),
    ]),
  );
}

/** The worker that executes the one run there is. */
export async function workerWithRun(server: ServerProcess): Promise<number> {
  let worker = Number.NaN;
  const find = async () => {
    const active = [...(await samplesOf(server, "skein_runs_active"))];
    worker = active.find(([, runs]) => runs === 1)?.[0] ?? Number.NaN;
    return worker;
  };
  await expect.poll(find).not.toBeNaN();
  return worker;
}
