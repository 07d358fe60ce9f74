// Notifications to the executor of runs, within one process.

import type { ControlMessage } from "../core/stores.ts";

export class ControlChannel {
  #listener: ((call: ControlMessage) => void) | undefined;

  subscribe(listener: (call: ControlMessage) => void): void {
    this.#listener = listener;
  }

  /** Delivers in a microtask; does nothing once closed. */
  publish(call: ControlMessage): void {
    queueMicrotask(() => this.#listener?.(call));
  }

  close(): void {
    this.#listener = undefined;
  }
}
