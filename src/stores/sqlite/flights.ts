// The threads of which something is committed and on its way to the disk. What is read or decided meanwhile is answered when it is
// there, so that no one relies on what a power failure may take back.

import { type ThreadKey, threadText } from "../row-keys.ts";

export class Flights {
  readonly #threads = new Map<string, Promise<void>>();

  /** Until `landed` settles. */
  add(thread: ThreadKey, landed: Promise<unknown>): void {
    const text = threadText(thread);
    const over = () => {
      if (this.#threads.get(text) === flight) this.#threads.delete(text);
    };
    const flight: Promise<void> = landed.then(over, over);
    this.#threads.set(text, flight);
  }

  /** What to wait for; undefined when all of the thread is on disk. Never rejects. */
  of(thread: ThreadKey): Promise<void> | undefined {
    // Nearly always there is nothing.
    return this.#threads.size === 0 ? undefined : this.#threads.get(threadText(thread));
  }
}
