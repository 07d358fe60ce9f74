// Limits how many sandboxes run, and stops, removes and deletes those that are unused: this process's own, and those that
// other processes left behind.

import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { AppError } from "../../core/errors.ts";
import { backoff } from "../../lib/backoff.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Sandbox, SandboxRecord, SandboxState } from "../ledger.ts";
import type { ContainerSummary, DockerClient } from "./engine.ts";
import type { Host } from "./host.ts";
import { ERRAND, labelOf, sandboxOf } from "./identity.ts";

/** The most sandboxes to expire in one round. */
const BATCH_SIZE = 20;
const RECONCILE_MS = 5 * 60_000;

/** A sandbox that this process has opened. */
interface OwnSandbox {
  /** Whether it was used since the last call. */
  takeUse(): boolean;
  /** What the engine reports of a container that may be its own. */
  onContainerEvent(containerId: string, action: string): void;
}

interface ReaperOptions {
  readonly getHost: () => Promise<Host>;
  /** Those of this process, by id. */
  readonly sandboxes: () => Iterable<readonly [id: string, sandbox: OwnSandbox]>;
  readonly sweepMs: number;
  readonly logger: Logger;
}

export class Reaper {
  readonly #options: ReaperOptions;
  readonly #closing = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();
  #isInRound = false;
  #reconciledAt = Number.NEGATIVE_INFINITY;
  #isWatching = false;
  #failure: string | undefined;

  constructor(options: ReaperOptions) {
    this.#options = options;
  }

  /** Safe to repeat. */
  start(): void {
    if (this.#timer || this.#closing.signal.aborted) return;
    this.#timer = setInterval(() => this.#next(), this.#options.sweepMs).unref();
    this.#next();
  }

  /** Resolves when the current round has ended. */
  async close(): Promise<void> {
    this.#closing.abort();
    clearInterval(this.#timer);
    await this.#round;
  }

  #next(): void {
    if (this.#isInRound || this.#closing.signal.aborted) return;
    this.#isInRound = true;
    this.#round = this.#look()
      .then(
        () => {
          this.#failure = undefined;
        },
        (error: unknown) => this.#complain(error),
      )
      .finally(() => {
        this.#isInRound = false;
      });
  }

  async #look(): Promise<void> {
    const { signal } = this.#closing;
    const host = await this.#options.getHost();
    this.#watch(host);
    if (performance.now() - this.#reconciledAt > RECONCILE_MS) {
      await reconcile(host, signal);
      this.#reconciledAt = performance.now();
    }
    const used = [...this.#options.sandboxes()].filter(([, sandbox]) => sandbox.takeUse());
    if (used.length > 0) await host.ledger.touch(used.map(([id]) => id));
    for (const seen of await host.ledger.due(BATCH_SIZE)) {
      if (signal.aborted) return;
      await expire(host, seen, signal).catch((error: unknown) => this.#complain(error));
    }
  }

  #watch({ engine, deployment }: Host): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    void watch(
      engine,
      labelOf(deployment),
      (containerId, action) => {
        for (const [, sandbox] of this.#options.sandboxes()) sandbox.onContainerEvent(containerId, action);
      },
      this.#closing.signal,
    );
  }

  /** Logs the same failure once, not in every round. */
  #complain(err: unknown): void {
    if (this.#closing.signal.aborted) return;
    const failure = String(err);
    if (failure !== this.#failure) this.#options.logger.warn({ err }, "could not check for unused sandboxes");
    this.#failure = failure;
  }
}

/**
 * Takes an unused sandbox one step down: stops it, then removes its container, then deletes its files. False, with no
 * effect, when it was used meanwhile. Throws the engine's error.
 */
async function expire(host: Host, seen: SandboxRecord, signal: AbortSignal): Promise<boolean> {
  const ending = await host.ledger.begin(seen);
  if (!ending) return false;
  const next = await STEPS[seen.state](host, seen.id, signal);
  await host.ledger.settle(ending, next);
  host.logger.info({ sandbox: seen.id, state: next }, "an unused sandbox expired");
  return true;
}

type Step = (host: Host, id: string, signal: AbortSignal) => Promise<"stopped" | "removed" | "gone">;

const stop: Step = async ({ engine, disk }, id, signal) => {
  await engine.stop(id, signal);
  await disk.release(id, signal);
  return "stopped";
};

const STEPS: Record<SandboxRecord["state"], Step> = {
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
  /** A process crashed during a step. Which one is unknown, so the first possible one is done. */
  async ending(host, id, signal) {
    if (await host.engine.inspect(id, signal)) return stop(host, id, signal);
    await host.disk.release(id, signal);
    return "removed";
  },
};

const RECONNECT_BACKOFF = { base: 100, cap: 5000 };

const Line = z.object({ Action: z.string(), Actor: z.object({ ID: z.string() }) });

/** Reports events of containers until `signal` aborts. Misses those that happen while the engine is unreachable. */
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
  const end = () => stream.destroy();
  signal.addEventListener("abort", end, { once: true });
  stream.on("error", () => {});
  try {
    yield* createInterface({ input: stream });
  } finally {
    signal.removeEventListener("abort", end);
    stream.destroy();
  }
}

/** Younger containers and records are left alone: another process may be creating them. */
const SETTLED_MS = 120_000;

/** Makes the ledger and the engine agree, so that everything with this deployment's label expires. Throws the engine's error. */
async function reconcile(host: Host, signal: AbortSignal): Promise<void> {
  const containers = await host.engine.list(labelOf(host.deployment), signal);
  for (const container of containers) await reconcileContainer(host, container, signal);
  const known = new Set(containers.map(({ name }) => name));
  for (const { id, labels } of await host.disk.list(signal)) {
    const sandbox = known.has(id) ? undefined : sandboxOf(host.deployment, id, labels);
    if (sandbox) await reconcileFiles(host, sandbox);
  }
}

async function reconcileContainer(
  host: Host,
  container: ContainerSummary,
  signal: AbortSignal,
): Promise<void> {
  const { id, name, labels, status, createdAt } = container;
  const sandbox = ERRAND in labels ? undefined : sandboxOf(host.deployment, name, labels);
  if (!sandbox) {
    if (isSettled(createdAt)) await host.engine.remove(id, signal);
    return;
  }
  await host.ledger.adopt(sandbox, status === "running" ? "running" : "stopped");
  // Stopped by an operator, or with the machine.
  if (status === "exited") await correct(host, name, ["running"], "stopped");
}

async function reconcileFiles(host: Host, sandbox: Sandbox): Promise<void> {
  await host.ledger.adopt(sandbox, "removed");
  await correct(host, sandbox.id, ["running", "stopped"], "removed");
}

async function correct(host: Host, id: string, wrong: readonly SandboxState[], state: "stopped" | "removed") {
  const seen = await host.ledger.get(id);
  if (!seen || !wrong.includes(seen.state) || !isSettled(seen.used_at)) return;
  const ending = await host.ledger.begin(seen);
  if (ending) await host.ledger.settle(ending, state);
}

const isSettled = (ms: number) => Date.now() - ms > SETTLED_MS;

/** A sandbox unused this long may be stopped for another one. Processes report use more often. */
const ROOM_IDLE_MS = 60_000;
const CANDIDATES = 5;
const RETRY_MS = 100;

/** Records it in the ledger as running. Throws `unavailable` or `limit_exceeded` when too many run. */
export async function admit(host: Host, sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  let hasMadeRoom = false;
  for (;;) {
    const answer = await host.ledger.enter(sandbox, host.caps);
    if (answer === "entered") return;
    if (answer === "tenant" || answer === "total") {
      const tenant = answer === "tenant" ? sandbox.owner.tenant : undefined;
      if (hasMadeRoom || !(await makeRoom(host, tenant, signal)))
        throw answer === "tenant" ? tooMany(host.caps.tenant) : allInUse(host.caps.total);
      hasMadeRoom = true;
    } else await sleep(RETRY_MS, undefined, { signal });
  }
}

/** Undoes `admit` for one that could not be started. Throws the engine's error. */
export async function withdraw({ engine, ledger }: Host, id: string): Promise<void> {
  const found = await engine.inspect(id);
  const seen = found?.status === "running" ? undefined : await ledger.get(id);
  const ending = seen?.state === "running" ? await ledger.begin(seen) : undefined;
  if (ending) await ledger.settle(ending, found ? "stopped" : "removed");
}

/** Stops an idle sandbox: one of `tenant`, or of the tenant that has most. */
async function makeRoom(host: Host, tenant: string | undefined, signal: AbortSignal): Promise<boolean> {
  for (const seen of await host.ledger.idle(ROOM_IDLE_MS, CANDIDATES, tenant))
    if (await expire(host, seen, signal)) return true;
  return false;
}

const tooMany = (most: number) =>
  new AppError(
    "limit_exceeded",
    `At most ${most} sandboxes of one tenant may run at once. Stop one, or wait until one is idle.`,
    { details: { limit: "sandboxes", most } },
  );

const allInUse = (most: number) =>
  new AppError("unavailable", `All ${most} sandboxes of this server are in use. Try again later.`);
