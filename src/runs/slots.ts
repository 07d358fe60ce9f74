// The runs that a process may execute at once.

import type { Claim } from "../core/stores.ts";

/** Room for one run. */
export interface Slot {
  /** The run has it until it ends. */
  execute(claim: Claim): void;
  /** To be called in any case; does nothing once a run has it. */
  free(): void;
}

export class Slots {
  readonly #size: number;
  readonly #execute: (claim: Claim) => Promise<void>;
  readonly #onFree: () => void;
  #taken = 0;
  #idle = Promise.withResolvers<void>();

  /**
   * `execute` resolves when the slot is no longer needed; it must not throw. `onFree` is told of every slot that comes
   * free.
   */
  constructor(size: number, execute: (claim: Claim) => Promise<void>, onFree: () => void) {
    this.#size = size;
    this.#execute = execute;
    this.#onFree = onFree;
    this.#idle.resolve();
  }

  get areAllTaken(): boolean {
    return this.#taken >= this.#size;
  }

  /** Resolves when none is taken. */
  get idle(): Promise<void> {
    return this.#idle.promise;
  }

  /** Nothing when all are taken. */
  take(): Slot | undefined {
    if (this.areAllTaken) return undefined;
    if (this.#taken++ === 0) this.#idle = Promise.withResolvers();
    let isMine = true;
    return {
      execute: (claim) => {
        isMine = false;
        void this.#execute(claim).finally(() => this.#free());
      },
      free: () => {
        if (isMine) this.#free();
        isMine = false;
      },
    };
  }

  #free(): void {
    if (--this.#taken === 0) this.#idle.resolve();
    this.#onFree();
  }
}
