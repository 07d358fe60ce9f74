// Limits the number of working subagents. A run that waits for subagents does not occupy a place, so it cannot block
// its subagents.

import { AppError } from "../../agent/core/errors.ts";
import { Shares, sharedPlaces } from "../../agent/core/shares.ts";

export interface SubagentLimits {
  /** The maximum number of working subagents in this process. Tenants get fair shares. Further subagents wait. */
  readonly atOnce: number;
  /**
   * The maximum number of subagents that can work at once for a run and its subagents, in this process. Further
   * subagents wait.
   */
  readonly perRun: number;
  /**
   * The maximum number of subagents that a run and its subagents can start in total, in this process. Further subagents
   * are refused.
   */
  readonly inAll: number;
}

export const SUBAGENT_LIMITS: SubagentLimits = { atOnce: 256, perRun: 16, inAll: 200 };

/** Identifies a tree of runs: a thread's own run and all runs that work for it. */
export interface TreeKey {
  readonly tenant: string;
  readonly user: string;
  /** The root thread. */
  readonly root: string;
}

interface RunTree {
  readonly tenant: string;
  /** The number of runs that this process executes. */
  members: number;
  /** The number of subagents that have a place. */
  working: number;
  started: number;
  /** The callbacks of the subagents that wait for a place. */
  readonly waiting: Set<() => void>;
}

interface SubagentSlot {
  /** The number of calls in which the subagent waits for other subagents. */
  pauses: number;
  giveBack: (() => void) | undefined;
}

export class SubagentPlaces {
  readonly #limits: SubagentLimits;
  readonly #shares: Shares;
  readonly #trees = new Map<string, RunTree>();
  /** The waiting trees by tenant. The first tenant is served next, and so is the first tree of each tenant. */
  readonly #waiting = new Map<string, Set<RunTree>>();
  /** The places by run. */
  readonly #places = new Map<string, SubagentSlot & { readonly tree: RunTree }>();

  constructor(limits: SubagentLimits, hasSeveralTenants: boolean) {
    this.#limits = limits;
    this.#shares = new Shares(sharedPlaces(limits.atOnce, hasSeveralTenants));
  }

  /** Call this for each executed run, and call the returned function when the run has ended. */
  join(key: TreeKey): () => void {
    const text = JSON.stringify([key.tenant, key.user, key.root]);
    const tree = this.#trees.get(text) ?? {
      tenant: key.tenant,
      members: 0,
      working: 0,
      started: 0,
      waiting: new Set<() => void>(),
    };
    this.#trees.set(text, tree);
    tree.members++;
    return () => {
      if (--tree.members === 0) this.#trees.delete(text);
    };
  }

  /**
   * Counts a subagent that is about to start. Throws `limit_exceeded` if the subagent's tree has already started the
   * maximum number of subagents.
   */
  start({ tenant, user, root }: TreeKey): void {
    const tree = this.#trees.get(JSON.stringify([tenant, user, root]));
    if (!tree) return;
    const { inAll } = this.#limits;
    if (tree.started >= inAll)
      throw new AppError(
        "limit_exceeded",
        `This run and its agents have started ${inAll} agents, which is the limit (\`limits.subagents_in_all\`). Do the rest without other agents.`,
        { details: { limit: "limits.subagents_in_all", most: inAll } },
      );
    tree.started++;
  }

  /**
   * Resolves when the subagent's run can start working, or when `signal` aborts. Call the returned function when the
   * run has ended. The subagent's tree must already be registered.
   */
  async enter({ tenant, user, root }: TreeKey, runId: string, signal: AbortSignal): Promise<() => void> {
    const tree = this.#trees.get(JSON.stringify([tenant, user, root]));
    if (!tree) return () => {};
    const place = { tree, pauses: 0, giveBack: undefined };
    this.#places.set(runId, place);
    await this.#acquire(place, signal);
    return () => {
      if (this.#places.get(runId) === place) this.#places.delete(runId);
      this.#giveBack(place);
    };
  }

  /**
   * Marks the run as waiting for subagents. Call the returned function after the wait. The returned function's promise
   * resolves when the run can continue working, or when `signal` aborts. Runs that are not subagents need no place and
   * continue at once.
   */
  pause(runId: string, signal: AbortSignal): () => Promise<void> {
    const place = this.#places.get(runId);
    if (!place) return async () => {};
    if (place.pauses++ === 0) this.#giveBack(place);
    return async () => {
      if (--place.pauses === 0 && this.#places.get(runId) === place) await this.#acquire(place, signal);
    };
  }

  async #acquire(place: SubagentSlot & { readonly tree: RunTree }, signal: AbortSignal): Promise<void> {
    const { tree } = place;
    const { promise, resolve } = Promise.withResolvers<void>();
    const granted = () => {
      if (place.pauses > 0 || place.giveBack || signal.aborted) return resolve();
      tree.working++;
      const giveBack = this.#shares.take(tree.tenant);
      place.giveBack = () => {
        tree.working--;
        giveBack();
      };
      resolve();
    };
    tree.waiting.add(granted);
    this.#await(tree);
    const onAbort = () => {
      tree.waiting.delete(granted);
      if (tree.waiting.size === 0) this.#forget(tree);
      resolve();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    this.#grant();
    await promise;
    signal.removeEventListener("abort", onAbort);
  }

  #giveBack(place: SubagentSlot): void {
    place.giveBack?.();
    place.giveBack = undefined;
    this.#grant();
  }

  /** Assigns places to waiting subagents, one tenant after the other. */
  #grant(): void {
    for (let next = this.#next(); next; next = this.#next()) {
      const [granted] = next.waiting;
      if (!granted) return;
      next.waiting.delete(granted);
      this.#forget(next);
      if (next.waiting.size > 0) this.#await(next);
      granted();
    }
  }

  #next(): RunTree | undefined {
    for (const [tenant, trees] of this.#waiting) {
      if (this.#shares.verdict(tenant) !== "granted") continue;
      for (const tree of trees) if (tree.working < this.#limits.perRun) return tree;
    }
    return undefined;
  }

  /** Moves the tree and its tenant to the end of the queue. */
  #await(tree: RunTree): void {
    const trees = this.#waiting.get(tree.tenant);
    if (trees) trees.add(tree);
    else this.#waiting.set(tree.tenant, new Set([tree]));
  }

  #forget(tree: RunTree): void {
    const trees = this.#waiting.get(tree.tenant);
    if (!trees) return;
    trees.delete(tree);
    // The tenant's remaining trees get their next turn after the other tenants.
    this.#waiting.delete(tree.tenant);
    if (trees.size > 0) this.#waiting.set(tree.tenant, trees);
  }
}
