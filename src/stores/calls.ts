// What a process that has its stores for itself asks of whoever executes runs in it.

import type { RunCall } from "../core/stores.ts";

export class Calls {
  #listener: ((call: RunCall) => void) | undefined;

  listen(listener: (call: RunCall) => void): void {
    this.#listener = listener;
  }

  /** The listener hears it when the work that is at hand is done; nobody, once this is closed. */
  say(call: RunCall): void {
    queueMicrotask(() => this.#listener?.(call));
  }

  close(): void {
    this.#listener = undefined;
  }
}
