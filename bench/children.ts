// The processes of a benchmark. Each is started on its own processor, and all are stopped together.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { get } from "node:http";
import { createServer } from "node:net";
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

const READY_MS = 30_000;
const POLL_MS = 2;
const STOP_MS = 15_000;

/**
 * The measured process has processor 0 to itself, as far as the machine's other work allows. All other processes share
 * the rest.
 */
type Place = "measured" | "around";

export interface ChildOptions {
  /** The program and its arguments. */
  readonly program: readonly string[];
  readonly place: Place;
  readonly env?: Record<string, string>;
  /** The file that receives its output. */
  readonly logFile: string;
}

export interface Child {
  readonly process: ChildProcess;
  readonly pid: number;
  /** Returns the last output of the process. */
  complaint(): string;
}

export interface Server extends Child {
  readonly port: number;
  /** The time from the start of the process to its first response. */
  readonly startMs: number;
}

export class Children {
  readonly #live = new Set<Child>();

  start({ program, place, env = {}, logFile }: ChildOptions): Child {
    const log = openSync(logFile, "a");
    const [command = "", ...rest] = [...pinned(place), ...program];
    const spawned = spawn(command, rest, {
      env: { PATH: process.env.PATH ?? "", ...env },
      stdio: ["ignore", log, log, "ipc"],
    });
    closeSync(log);
    if (spawned.pid === undefined) throw new Error(`Could not start \`${command} ${rest.join(" ")}\`.`);
    const complaint = () => readFileSync(logFile, "utf8").slice(-4000);
    const child = { process: spawned, pid: spawned.pid, complaint };
    this.#live.add(child);
    spawned.once("exit", () => this.#live.delete(child));
    return child;
  }

  /** Resolves once the server responds on its own port. Throws if the process ends before that, or takes too long. */
  async serve(options: ChildOptions): Promise<Server> {
    const port = await freePort();
    const began = performance.now();
    const child = this.start({ ...options, env: { ...options.env, HOST: "127.0.0.1", PORT: String(port) } });
    for (;;) {
      if (await isHealthy(port)) return { ...child, port, startMs: performance.now() - began };
      if (hasEnded(child) || performance.now() - began > READY_MS)
        throw new Error(`\`${options.program.join(" ")}\` does not serve. ${child.complaint()}`);
      await sleep(POLL_MS);
    }
  }

  /** Asks the process to end, and kills it if it does not. */
  async stop(child: Child): Promise<void> {
    if (hasEnded(child)) return;
    const ended = once(child.process, "exit");
    child.process.kill("SIGTERM");
    const timer = setTimeout(() => child.process.kill("SIGKILL"), STOP_MS);
    await ended.finally(() => clearTimeout(timer));
  }

  /** Kills all processes at once, for a process that is about to end itself. */
  kill(): void {
    for (const child of this.#live) child.process.kill("SIGKILL");
  }
}

const hasEnded = ({ process }: Child) => process.exitCode !== null || process.signalCode !== null;

function isHealthy(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    get({ port, host: "127.0.0.1", path: "/health", agent: false }, (response) => {
      response.resume().on("close", () => resolve(response.statusCode === 200));
    }).on("error", () => resolve(false));
  });
}

/** Keeps this process off the processor of the measured process. */
export function stepAside(): void {
  const [command, ...args] = pinned("around", "-ap");
  if (command) spawnSync(command, [...args, String(process.pid)]);
}

/** Read before any process is pinned, because this process has fewer processors afterwards. */
const PROCESSORS = availableParallelism();
const CANNOT_PIN = PROCESSORS < 2 || spawnSync("taskset", ["-c", "0", "true"]).status !== 0;

function pinned(place: Place, flags = "-"): string[] {
  if (CANNOT_PIN) return [];
  return ["taskset", `${flags}c`, place === "measured" ? "0" : `1-${PROCESSORS - 1}`];
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  if (address === null || typeof address === "string") throw new Error("There is no free port.");
  return address.port;
}
