// Stops, removes and deletes unused sandboxes, both this process's own and leftovers from other processes.

import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { backoff } from "../../lib/backoff.ts";
import type { Logger } from "../../lib/logger.ts";
import type { SandboxLedger } from "../ledger.ts";
import type { SandboxRecord, SandboxState } from "../sandbox-records.ts";
import { deleteCopy } from "./deleting.ts";
import type { ContainerSummary, DockerClient } from "./engine.ts";
import type { Engines, UnplacedSandbox } from "./engines.ts";
import type { Host } from "./host.ts";
import { ERRAND, labelOf, MOVE, sandboxOf, sandboxOfErrand } from "./identity.ts";
import type { drainer } from "./moving/index.ts";

/** The maximum number of sandboxes that expire in one round. */
const BATCH_SIZE = 20;
const RECONCILE_MS = 5 * 60_000;

/** A sandbox that this process has opened. */
interface OwnSandbox {
  /** Returns and clears the "used" flag. */
  takeUse(): boolean;
  /** Called for each event of a container that may belong to the sandbox. */
  onContainerEvent(containerId: string, action: string): void;
}

interface ReaperOptions {
  readonly engines: Engines;
  readonly ledger: SandboxLedger;
  /** Returns this process's sandboxes by id. */
  readonly sandboxes: () => Iterable<readonly [id: string, sandbox: OwnSandbox]>;
  readonly sweepMs: number;
  readonly logger: Logger;
}

export class Reaper {
  readonly #options: ReaperOptions;
  #drain: ReturnType<typeof drainer> | undefined;
  readonly #closing = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();
  #isInRound = false;
  #moving: Promise<void> | undefined;
  /** The keys are engine names. */
  readonly #reconciledAt = new Map<string, number>();
  readonly #watched = new Set<string>();
  readonly #failures = new Map<string, string>();

  constructor(options: ReaperOptions) {
    this.#options = options;
  }

  /** Starts the rounds. Safe to repeat. */
  start(): void {
    if (this.#timer || this.#closing.signal.aborted) return;
    this.#timer = setInterval(() => this.#next(), this.#options.sweepMs).unref();
    this.#next();
  }

  /** Stops the rounds. Resolves when the current round has ended. */
  async close(): Promise<void> {
    this.#closing.abort();
    clearInterval(this.#timer);
    await this.#round;
    await this.#moving;
  }

  #next(): void {
    if (this.#isInRound || this.#closing.signal.aborted) return;
    this.#isInRound = true;
    this.#round = this.#look()
      .catch((error: unknown) => this.#complain("", error))
      .finally(() => {
        this.#isInRound = false;
      });
  }

  async #look(): Promise<void> {
    const { engines, ledger } = this.#options;
    const hosts = await engines.reachable((name, error) => this.#complain(name, error));
    for (const host of hosts) await this.#lookAt(host);
    const used = [...this.#options.sandboxes()].filter(([, sandbox]) => sandbox.takeUse());
    if (used.length > 0) await ledger.touch(used.map(([id]) => id));
    const byName = new Map(hosts.map((host) => [host.name, host]));
    for (const seen of await dueOn(ledger, byName)) {
      const host = byName.get(seen.engine);
      if (this.#closing.signal.aborted) return;
      if (host)
        await expire(host, seen, this.#closing.signal).catch((error: unknown) => this.#complain("", error));
    }
    // Moving files takes longer than one round may take, and the use of sandboxes must be reported in the
    // meantime.
    this.#moving ??= this.#empty(hosts.filter(({ name }) => engines.isDraining(name)))
      .catch((error: unknown) => this.#complain("", error))
      .finally(() => (this.#moving = undefined));
  }

  /** Moves the files of draining engines to other engines. */
  async #empty(hosts: readonly Host[]): Promise<void> {
    if (hosts.length === 0) return;
    const { engines, logger } = this.#options;
    this.#drain ??= (await import("./moving/index.ts")).drainer(engines, logger);
    await this.#drain(hosts, this.#closing.signal);
  }

  async #lookAt(host: Host): Promise<void> {
    this.#watch(host);
    const before = this.#reconciledAt.get(host.name) ?? Number.NEGATIVE_INFINITY;
    if (performance.now() - before <= RECONCILE_MS) return;
    try {
      await reconcile(host, this.#closing.signal);
      this.#reconciledAt.set(host.name, performance.now());
      this.#failures.delete(host.name);
    } catch (error) {
      this.#complain(host.name, error);
    }
  }

  #watch({ name, engine, deployment }: Host): void {
    if (this.#watched.has(name)) return;
    this.#watched.add(name);
    void watch(
      engine,
      labelOf(deployment),
      (containerId, action) => {
        for (const [, sandbox] of this.#options.sandboxes()) sandbox.onContainerEvent(containerId, action);
      },
      this.#closing.signal,
    );
  }

  /** Logs a repeated failure of an engine only once, not in every round. */
  #complain(engine: string, err: unknown): void {
    if (this.#closing.signal.aborted) return;
    const failure = String(err);
    if (failure !== this.#failures.get(engine))
      this.#options.logger.warn({ engine, err }, "could not check for unused sandboxes");
    this.#failures.set(engine, failure);
  }
}

/** Lists due sandboxes on engines that answer, so an unreachable engine does not delay the others. */
async function dueOn(ledger: SandboxLedger, hosts: ReadonlyMap<string, Host>): Promise<SandboxRecord[]> {
  for (let limit = BATCH_SIZE; ; limit *= 4) {
    const due = await ledger.due(limit);
    const there = due.filter(({ engine }) => hosts.has(engine));
    if (there.length >= BATCH_SIZE || due.length < limit) return there.slice(0, BATCH_SIZE);
  }
}

/**
 * Moves an unused sandbox one step down: stops it, removes its container, or deletes its files. Returns false and does
 * nothing if it was used in the meantime. Throws the engine's error.
 */
export async function expire(host: Host, seen: SandboxRecord, signal: AbortSignal): Promise<boolean> {
  // The copy must be deleted before the record.
  if (seen.copy !== undefined && seen.state === "removed") return false;
  const ending = await host.ledger.begin(seen);
  if (!ending) return false;
  const next = await STEPS[seen.state](host, seen.id, signal);
  await host.ledger.settle(ending, next);
  host.logger.info({ sandbox: seen.id, state: next }, "an unused sandbox expired");
  return true;
}

type ReapAction = (host: Host, id: string, signal: AbortSignal) => Promise<"stopped" | "removed" | "gone">;

const stop: ReapAction = async ({ engine, disk }, id, signal) => {
  await engine.stop(id, signal);
  await disk.release(id, signal);
  return "stopped";
};

const STEPS: Record<SandboxRecord["state"], ReapAction> = {
  running: stop,
  async stopped({ engine, disk }, id, signal) {
    await engine.remove(id, signal);
    await disk.release(id, signal);
    return "removed";
  },
  async removed({ engine, disk }, id, signal) {
    await engine.remove(id, signal);
    await disk.remove(id, signal);
    return "gone";
  },
  /**
   * Handles a crash of a process during a step. It is not known which step was interrupted, so this runs the first
   * possible one.
   */
  async ending(host, id, signal) {
    if (await host.engine.inspect(id, signal)) return stop(host, id, signal);
    await host.disk.release(id, signal);
    return "removed";
  },
};

const RECONNECT_BACKOFF = { base: 100, cap: 5000 };

const Line = z.object({ Action: z.string(), Actor: z.object({ ID: z.string() }) });

/** Reports container events until `signal` aborts. Misses events while the engine is unreachable. */
async function watch(
  engine: DockerClient,
  label: string,
  onEvent: (containerId: string, action: string) => void,
  signal: AbortSignal,
): Promise<void> {
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      const stream = await engine.events(label, signal);
      for await (const line of linesOf(stream, signal)) {
        failures = 0;
        const event = Line.safeParse(JSON.parse(line)).data;
        if (event) onEvent(event.Actor.ID, event.Action);
      }
    } catch {
      // The engine is unreachable or the stream broke: reconnect.
    }
    await sleep(backoff(failures, RECONNECT_BACKOFF), undefined, { signal }).catch(() => {});
  }
}

async function* linesOf(stream: Readable, signal: AbortSignal): AsyncGenerator<string> {
  try {
    // Without the signal, it would wait forever for lines of a destroyed stream.
    yield* createInterface({ input: stream, signal });
  } finally {
    stream.destroy();
  }
}

/**
 * The minimum age in milliseconds. Younger containers and records are skipped, because another process may be
 * creating them.
 */
const SETTLED_MS = 120_000;

/** Makes the ledger match the engine, so everything with this deployment's label can expire. Throws the engine's error. */
async function reconcile(host: Host, signal: AbortSignal): Promise<void> {
  const containers = await host.engine.list(labelOf(host.deployment), signal);
  for (const container of containers) await reconcileContainer(host, container, signal);
  const known = new Set(containers.map(({ name }) => name));
  for (const { id, labels } of await host.disk.list(signal)) {
    const sandbox = known.has(id) ? undefined : sandboxOf(host.deployment, id, labels);
    if (sandbox) await reconcileFiles(host, sandbox);
  }
  for (const seen of await host.ledger.list())
    if (seen.copy === host.name) await deleteCopy(host, seen, signal);
}

async function reconcileContainer(
  host: Host,
  container: ContainerSummary,
  signal: AbortSignal,
): Promise<void> {
  const { id, name, labels, status, createdAt } = container;
  const sandbox = ERRAND in labels ? undefined : sandboxOf(host.deployment, name, labels);
  if (!sandbox) {
    const isMoving =
      labels[ERRAND] === MOVE && (await host.ledger.get(sandboxOfErrand(name)))?.state === "ending";
    if (isSettled(createdAt) && !isMoving) await host.engine.remove(id, signal);
    return;
  }
  await adopt(host, sandbox, status === "running" ? "running" : "stopped");
  // An operator stopped the container, or it stopped with the machine.
  if (status === "exited") await correct(host, name, ["running"], "stopped");
}

async function reconcileFiles(host: Host, sandbox: UnplacedSandbox): Promise<void> {
  await adopt(host, sandbox, "removed");
  await correct(host, sandbox.id, ["running", "stopped"], "removed");
}

/**
 * Adds a sandbox to the ledger. Skips files on an engine other than the recorded one, because only a person
 * can tell which files are right.
 */
async function adopt(host: Host, sandbox: UnplacedSandbox, state: "running" | "stopped" | "removed") {
  await host.ledger.adopt({ ...sandbox, engine: host.name }, state);
  const { engine, copy } = (await host.ledger.get(sandbox.id)) ?? {};
  if (engine !== undefined && engine !== host.name && copy !== host.name)
    host.logger.warn(
      { sandbox: sandbox.id, engine: host.name, recorded: engine },
      "a sandbox has files on an engine other than the recorded one",
    );
}

async function correct(host: Host, id: string, wrong: readonly SandboxState[], state: "stopped" | "removed") {
  const seen = await host.ledger.get(id);
  if (!seen || seen.engine !== host.name) return;
  if (!wrong.includes(seen.state) || !isSettled(seen.used_at)) return;
  const ending = await host.ledger.begin(seen);
  if (ending) await host.ledger.settle(ending, state);
}

const isSettled = (ms: number) => Date.now() - ms > SETTLED_MS;
