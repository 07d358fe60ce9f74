// The slots of a process limit how many runs it executes at once. Tenants get fair shares of them.

import { type Places, Shares } from "../../agent/core/shares.ts";
import type { Claim } from "../../agent/core/stores.ts";

/** A slot for one run. */
export interface Slot {
  /** Executes a run. The run keeps the slot until it ends. */
  execute(claim: Claim): void;
  /** Must always be called. Does nothing after a run has taken the slot. */
  free(): void;
}

/** Slots for runs that are about to be claimed. */
export interface ClaimSlots {
  /** The number of runs to claim. Each tenant can have up to this number of runs, except the tenants in `except`. */
  readonly count: number;
  /** The tenants that cannot get more slots now. */
  readonly except: readonly string[];
  /** Executes the claimed runs and frees the other slots. Must always be called. */
  execute(claims: readonly Claim[]): void;
}

export interface SlotOptions {
  /** Executes runs in one slot. Resolves with the slot's next state: free, or kept for a claim. Must not throw. */
  readonly work: (claim: Claim) => Promise<"free" | "claim">;
  /** Called whenever a slot becomes free. */
  readonly onFree: () => void;
}

export class Slots {
  readonly #size: number;
  readonly #shares: Shares;
  readonly #options: SlotOptions;
  /** The number of slots reserved for the next claim. New runs cannot take them. */
  #kept = 0;
  /** The number of slots in the claim in progress. The tenants of these slots are not known yet. */
  #claiming = 0;
  #idle = Promise.withResolvers<void>();

  constructor(places: Places, options: SlotOptions) {
    this.#size = places.size;
    this.#shares = new Shares(places);
    this.#options = options;
    this.#idle.resolve();
  }

  get areAllTaken(): boolean {
    return this.#taken >= this.#size;
  }

  /** Resolves when all slots are free. */
  get idle(): Promise<void> {
    return this.#idle.promise;
  }

  /** Returns undefined if no slot is free or the tenant has used up its share. */
  take(tenant: string): Slot | undefined {
    // A run that is being claimed may belong to this tenant.
    const unknown = this.#kept + this.#claiming;
    if (this.#shares.verdict(tenant, { taken: unknown, own: unknown }) !== "granted") return undefined;
    const giveBack = this.#take(tenant);
    let isMine = true;
    return {
      execute: (claim) => {
        isMine = false;
        void this.#work(claim, giveBack);
      },
      free: () => {
        if (!isMine) return;
        isMine = false;
        giveBack();
        this.#freed();
      },
    };
  }

  /** Returns up to `limit` slots for one claim at a time, starting with the slots reserved for it. */
  claim(limit: number): ClaimSlots {
    const wasIdle = this.#taken === 0;
    this.#kept = 0;
    const mayHave = (tenant: string, count: number) =>
      this.#shares.verdict(tenant, { taken: count, own: count }) === "granted";
    const tenants = this.#shares.tenants();
    const except = tenants.filter((tenant) => !mayHave(tenant, 0));
    // The empty name represents tenants without a slot.
    const others = ["", ...tenants.filter((tenant) => mayHave(tenant, 0))];
    let count = 0;
    while (count < limit && others.every((tenant) => mayHave(tenant, count))) count++;
    this.#claiming = count;
    if (count > 0 && wasIdle) this.#idle = Promise.withResolvers();
    return {
      count,
      except,
      execute: (claims) => {
        for (const claim of claims) void this.#work(claim, this.#take(claim.lease.owner.tenant));
        this.#claiming = 0;
        this.#settle();
      },
    };
  }

  /** Frees the slots that were reserved for a claim that is no longer needed. */
  release(): void {
    this.#kept = 0;
    this.#settle();
  }

  #take(tenant: string): () => void {
    if (this.#taken === 0) this.#idle = Promise.withResolvers();
    return this.#shares.take(tenant);
  }

  get #taken(): number {
    return this.#shares.used + this.#kept + this.#claiming;
  }

  async #work(claim: Claim, giveBack: () => void): Promise<void> {
    const next = await this.#options.work(claim);
    giveBack();
    if (next === "claim") this.#kept++;
    this.#freed();
  }

  #freed(): void {
    this.#settle();
    this.#options.onFree();
  }

  #settle(): void {
    if (this.#taken === 0) this.#idle.resolve();
  }
}
