// What a process that has its stores for itself asks of whoever executes runs in it.

import type { ControlMessage } from "../core/stores.ts";

export class ControlChannel {
  #listener: ((call: ControlMessage) => void) | undefined;

  subscribe(listener: (call: ControlMessage) => void): void {
    this.#listener = listener;
  }

  /** The listener hears it when the work that is at hand is done; nobody, once this is closed. */
  publish(call: ControlMessage): void {
    queueMicrotask(() => this.#listener?.(call));
  }

  close(): void {
    this.#listener = undefined;
  }
}
