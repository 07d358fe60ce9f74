// The servers, each a process of its own. Places are fixed; the process in one may die and is replaced. No
// process outlives this one.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { NODE_ENV } from "../support/node.ts";
import { MAIN } from "../support/program.ts";
import type { Journal } from "./journal.ts";

const TETHER = new URL("./tether.ts", import.meta.url).href;
/** A start that takes longer hangs. It is as long on a busy machine as limits of tests are: see vitest.config.ts. */
const START_MS = 120_000;
/** Between two attempts to start a server, when the first one cannot: the store may be away. */
const PAUSE_MS = 300;
/** How long a server that was asked to end may take before that counts as a fault. */
const END_MS = 60_000;

const STOP = "kill -STOP $0; sleep $1; kill -CONT $0";

export interface Replica {
  readonly name: string;
  readonly url: string;
  readonly child: ChildProcess;
  /** Its exit code, or the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals>;
  state: "up" | "stopped" | "ending";
}

export interface ReplicasOptions {
  readonly count: number;
  readonly dir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly journal: Journal;
  /** Whether what the servers need was there for all of the last moments: else they may fail. */
  readonly isCalm: () => boolean;
  /** Default: `skein serve`. */
  readonly program?: readonly string[];
  /** More variables for each process. */
  readonly own?: () => Readonly<Record<string, string>>;
}

export class Replicas {
  readonly #options: ReplicasOptions;
  readonly #places: (Replica | undefined)[];
  readonly #children = new Set<ChildProcess>();
  readonly #killAll = () => {
    for (const child of this.#children) child.kill("SIGKILL");
  };
  #made = 0;
  #isClosed = false;

  constructor(options: ReplicasOptions) {
    this.#options = options;
    this.#places = Array.from({ length: options.count }, () => undefined);
    process.on("exit", this.#killAll);
  }

  /** Resolves when all places are taken. */
  async open(): Promise<void> {
    // So that what is compiled is there for all of them.
    spawnSync(process.execPath, [MAIN, "--version"], { env: this.#environment("warm-up") });
    await Promise.all(this.#places.map((_, place) => this.#fill(place)));
  }

  /** Those that are at work. */
  get up(): readonly Replica[] {
    return this.#places.filter((replica) => replica?.state === "up") as Replica[];
  }

  /** Where clients may knock: also at the doors of those that are dead or asleep. */
  get urls(): readonly string[] {
    return this.#places.flatMap((replica) => replica?.url ?? []);
  }

  /** As by `kill -9`, at the latest after `dying`; another one takes the place after a while. */
  async kill(replica: Replica, thenMs: number, dying?: () => Promise<unknown>): Promise<void> {
    replica.state = "ending";
    await dying?.();
    this.#options.journal.strike(replica.name, "kill");
    replica.child.kill("SIGKILL");
    await replica.exited;
    await sleep(thenMs);
    await this.#fill(this.#places.indexOf(replica));
  }

  /** As by Ctrl-Z and `fg`: it wakes up and believes that nothing has happened. */
  async stop(replica: Replica, forMs: number): Promise<void> {
    replica.state = "stopped";
    this.#options.journal.strike(replica.name, "stop");
    // A separate process, so that the replica wakes up even if this process has died.
    const args = [STOP, String(replica.child.pid), String(forMs / 1000)];
    await once(spawn("sh", ["-c", ...args], { stdio: "ignore" }), "exit");
    this.#options.journal.note(`${replica.name} wakes up`);
    if (replica.state === "stopped") replica.state = "up";
  }

  /**
   * As by an orchestrator that rolls out a new version: the next one comes while this one goes. A server that is alone may
   * hold its database for itself, so the next one comes when it has gone.
   */
  async drain(replica: Replica): Promise<void> {
    const place = this.#places.indexOf(replica);
    replica.state = "ending";
    this.#options.journal.strike(replica.name, "drain");
    replica.child.kill("SIGTERM");
    const isLate = setTimeout(() => {
      this.#options.journal.fault(`${replica.name} did not end within ${END_MS} ms of SIGTERM`);
      replica.child.kill("SIGKILL");
    }, END_MS);
    const ended = replica.exited.then((code) => {
      clearTimeout(isLate);
      if (code !== 0 && this.#options.isCalm())
        this.#options.journal.fault(
          `${replica.name} ended with ${code} on SIGTERM: ${this.logOf(replica.name)}`,
        );
    });
    if (this.#places.length === 1) await ended;
    await Promise.all([ended, this.#fill(place)]);
  }

  /** The end of what it had to say. */
  logOf(name: string): string {
    return readFileSync(this.#logFile(name), "utf8").slice(-2000);
  }

  /** Ends all of them. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const replica of this.#places) if (replica) replica.state = "ending";
    const ended = [...this.#children].map((child) => once(child, "exit"));
    this.#killAll();
    await Promise.all(ended);
    process.off("exit", this.#killAll);
  }

  /** Retries, as a process supervisor does. Throws when the first servers cannot start. */
  async #fill(place: number): Promise<void> {
    const { journal, isCalm } = this.#options;
    while (!this.#isClosed) {
      const replica = await this.#launch();
      if (!("complaint" in replica)) {
        this.#places[place] = replica;
        void this.#replaceWhenGone(replica);
        return;
      }
      if (this.urls.length === 0) throw new Error(replica.complaint);
      if (isCalm() && !this.#isClosed) journal.fault(replica.complaint);
      journal.count("starts that failed");
      await sleep(PAUSE_MS);
    }
  }

  async #replaceWhenGone(replica: Replica): Promise<void> {
    const code = await replica.exited;
    if (replica.state === "ending" || this.#isClosed) return;
    replica.state = "ending";
    this.#options.journal.fault(`${replica.name} ended by itself with ${code}: ${this.logOf(replica.name)}`);
    await this.#fill(this.#places.indexOf(replica));
  }

  async #launch(): Promise<Replica | { readonly complaint: string }> {
    const { journal, program, own } = this.#options;
    const name = `replica-${++this.#made}`;
    const log = openSync(this.#logFile(name), "a");
    const child = spawn(process.execPath, ["--import", TETHER, ...(program ?? [MAIN, "serve"])], {
      env: { ...this.#environment(name), ...own?.() },
      stdio: ["ignore", "pipe", log, "ipc"],
    });
    closeSync(log);
    this.#children.add(child);
    journal.note(`${name} starts`);
    const exited = once(child, "exit").then(([code, signal]) => {
      this.#children.delete(child);
      journal.note(`${name} has ended with ${code ?? signal}`);
      return code ?? signal;
    });
    const timer = setTimeout(() => child.kill("SIGKILL"), START_MS);
    const url = await Promise.race([addressOf(child), exited.then(() => undefined)]);
    clearTimeout(timer);
    if (url === undefined)
      return { complaint: `${name} ended with ${await exited} before it served: ${this.logOf(name)}` };
    journal.note(`${name} serves`);
    return { name, url, child, exited, state: "up" };
  }

  #environment(name: string): Record<string, string> {
    return { ...NODE_ENV, ...this.#options.env, REPLICA: name };
  }

  #logFile(name: string): string {
    return join(this.#options.dir, `${name}.log`);
  }
}

/** Where it serves, as soon as it does. */
function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    child.stdout?.on("data", (chunk) => {
      text += String(chunk);
      const address = /serves on (http:\S+)/.exec(text)?.[1];
      if (address) resolve(address);
    });
  });
}
