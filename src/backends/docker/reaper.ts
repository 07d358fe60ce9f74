// Looks after the sandboxes of a deployment, those of this process and those that others have left: tells the
// ledger what is in use, and takes down what is not.

import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { AppError } from "../../core/errors.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Sandbox, SandboxRecord, SandboxState } from "../ledger.ts";
import type { ContainerSummary, DockerClient } from "./engine.ts";
import type { Host } from "./host.ts";
import { ERRAND, labelOf, sandboxOf } from "./identity.ts";

/** Retired in one round; the next round takes the others. */
const AT_ONCE = 20;
const RECONCILE_MS = 5 * 60_000;

/** A sandbox that this process has opened. */
interface OwnSandbox {
  /** Whether it was used since the last call. */
  takeUse(): boolean;
  /** What the engine reports of a container that may be its own. */
  onContainerEvent(containerId: string, action: string): void;
}

export interface ReaperOptions {
  readonly getHost: () => Promise<Host>;
  /** Those this process has, by id. */
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

  /** Resolves when nothing is being done any more. */
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
    for (const seen of await host.ledger.due(AT_ONCE)) {
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

  /** The same failure is told once, not in every round. */
  #complain(err: unknown): void {
    if (this.#closing.signal.aborted) return;
    const failure = String(err);
    if (failure !== this.#failure) this.#options.logger.warn({ err }, "could not look after the sandboxes");
    this.#failure = failure;
  }
}

// The way down of a sandbox that is not used: stopped, then its container removed, then its files deleted.

/** Takes it one step down. False when it was used meanwhile: then nothing is done. Throws what the engine says. */
export async function expire(host: Host, seen: SandboxRecord, signal: AbortSignal): Promise<boolean> {
  const ending = await host.ledger.begin(seen);
  if (!ending) return false;
  const next = await STEPS[seen.state](host, seen.id, signal);
  await host.ledger.settle(ending, next);
  host.logger.info({ sandbox: seen.id, state: next }, "a sandbox was not used for long");
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
  /** A process died over it: what it was about to do is not known, so the least of it is done. */
  async ending(host, id, signal) {
    if (await host.engine.inspect(id, signal)) return stop(host, id, signal);
    await host.disk.release(id, signal);
    return "removed";
  },
};

// What the engine tells of our containers, as it happens.
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5000;

const Line = z.object({ Action: z.string(), Actor: z.object({ ID: z.string() }) });

/** Calls back until `signal` aborts. What happens while the engine is away is not told. */
export async function watch(
  engine: DockerClient,
  label: string,
  onEvent: (containerId: string, action: string) => void,
  signal: AbortSignal,
): Promise<void> {
  for (let pause = FIRST_PAUSE_MS; !signal.aborted; pause = Math.min(pause * 2, MAX_PAUSE_MS)) {
    try {
      const stream = await engine.events(label, signal);
      for await (const line of linesOf(stream, signal)) {
        pause = FIRST_PAUSE_MS;
        const event = Line.safeParse(JSON.parse(line)).data;
        if (event) onEvent(event.Actor.ID, event.Action);
      }
    } catch {
      // The engine is away, or the stream broke; both look the same from here on.
    }
    await sleep(pause, undefined, { signal }).catch(() => {});
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

// Making the ledger and the engine agree: whatever carries our deployment's label is in the ledger, so that
// nothing is there that is never looked at again.
/** Nothing that is made right now is touched. */
const SETTLED_MS = 120_000;

/** Throws what the engine says. */
export async function reconcile(host: Host, signal: AbortSignal): Promise<void> {
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
  // Stopped by somebody else, or with the machine.
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

// Whether one more sandbox may run.
/** What is not used for so long may be stopped for another one. Processes tell of their use more often. */
const ROOM_IDLE_MS = 60_000;
const CANDIDATES = 5;
const ASK_AGAIN_MS = 100;

/** Enters it in the ledger as running. Throws `unavailable` or `limit_exceeded` when there is no room for it. */
export async function admit(host: Host, sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  let hasMadeRoom = false;
  for (;;) {
    const answer = await host.ledger.enter(sandbox, host.caps);
    if (answer === "entered") return;
    if (answer === "tenant") throw tooMany(host.caps.tenant);
    if (answer === "total") {
      if (hasMadeRoom || !(await makeRoom(host, signal))) throw allInUse(host.caps.total);
      hasMadeRoom = true;
    } else await sleep(ASK_AGAIN_MS, undefined, { signal });
  }
}

/** One that could not be made to run takes no room. Throws what the engine says. */
export async function withdraw({ engine, ledger }: Host, id: string): Promise<void> {
  const found = await engine.inspect(id);
  const seen = found?.status === "running" ? undefined : await ledger.get(id);
  const ending = seen?.state === "running" ? await ledger.begin(seen) : undefined;
  if (ending) await ledger.settle(ending, found ? "stopped" : "removed");
}

async function makeRoom(host: Host, signal: AbortSignal): Promise<boolean> {
  for (const seen of await host.ledger.idle(ROOM_IDLE_MS, CANDIDATES))
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
