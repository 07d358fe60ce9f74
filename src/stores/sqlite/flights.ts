// What is committed and on its way to the disk, by thread or by collection. What is read or decided meanwhile is answered when it is
// there, so that no one relies on what a power failure may take back.

export class Flights {
  readonly #flights = new Map<string, Promise<void>>();

  /** Until `landed` settles, which must not be before those that were added for the same key. */
  add(key: string, landed: Promise<unknown>): void {
    const over = () => {
      if (this.#flights.get(key) === flight) this.#flights.delete(key);
    };
    const flight: Promise<void> = landed.then(over, over);
    this.#flights.set(key, flight);
  }

  /** What to wait for; undefined when all of it is on disk. Never rejects: when the disk has failed, the file is closed. */
  of(key: string): Promise<void> | undefined {
    return this.#flights.get(key);
  }

  /** The same of everything. */
  async all(): Promise<void> {
    await Promise.all(this.#flights.values());
  }
}
