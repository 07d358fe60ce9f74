// Commits that are not on disk yet, by thread or by collection. A caller who reads one of them, or is refused because of it, gets the
// answer after its flush: a power failure takes back nothing that a caller was answered.

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

  /** A promise to wait for; undefined when everything is on disk. Never rejects: when the disk has failed, the file is closed. */
  of(key: string): Promise<void> | undefined {
    return this.#flights.get(key);
  }

  /** The same of everything. */
  async all(): Promise<void> {
    await Promise.all(this.#flights.values());
  }
}
