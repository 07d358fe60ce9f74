// Looks after the sandboxes of a deployment, those of this process and those that others have left: tells the
// ledger what is in use, and takes down what is not.

import type { Logger } from "../../lib/logger.ts";
import { labelOf } from "./identity.ts";
import { reconcile } from "./reconcile.ts";
import { retire } from "./retire.ts";
import type { DockerSandbox } from "./sandbox.ts";
import type { Host } from "./services.ts";
import { watch } from "./watch.ts";

/** Retired in one round; the next round takes the others. */
const AT_ONCE = 20;
const RECONCILE_MS = 5 * 60_000;

export interface KeeperOptions {
  readonly reach: () => Promise<Host>;
  /** Those this process has, by id. */
  readonly sandboxes: () => Iterable<readonly [id: string, sandbox: DockerSandbox]>;
  readonly sweepMs: number;
  readonly logger: Logger;
}

export class Keeper {
  readonly #options: KeeperOptions;
  readonly #closing = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();
  #isInRound = false;
  #reconciledAt = Number.NEGATIVE_INFINITY;
  #isWatching = false;
  #failure: string | undefined;

  constructor(options: KeeperOptions) {
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
    const host = await this.#options.reach();
    this.#watch(host);
    if (performance.now() - this.#reconciledAt > RECONCILE_MS) {
      await reconcile(host, signal);
      this.#reconciledAt = performance.now();
    }
    const used = [...this.#options.sandboxes()].filter(([, sandbox]) => sandbox.takeUse());
    if (used.length > 0) await host.ledger.touch(used.map(([id]) => id));
    for (const seen of await host.ledger.due(AT_ONCE)) {
      if (signal.aborted) return;
      await retire(host, seen, signal).catch((error: unknown) => this.#complain(error));
    }
  }

  #watch({ engine, deployment }: Host): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    void watch(
      engine,
      labelOf(deployment),
      (containerId, action) => {
        for (const [, sandbox] of this.#options.sandboxes()) sandbox.notice(containerId, action);
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
