// Tracks commits that are not on disk yet, by thread or by collection. A caller that reads such data, or is refused
// because of it, gets the result only after the flush, so a power failure never invalidates a result.

export class Flights {
  readonly #flights = new Map<string, Promise<void>>();

  /** Tracks a commit until `landed` settles, which must not happen before earlier commits for the same key. */
  add(key: string, landed: Promise<unknown>): void {
    const over = () => {
      if (this.#flights.get(key) === flight) this.#flights.delete(key);
    };
    const flight: Promise<void> = landed.then(over, over);
    this.#flights.set(key, flight);
  }

  /**
   * Returns a promise to wait for, or undefined if everything is on disk. Never rejects, because the file is closed if
   * the disk fails.
   */
  of(key: string): Promise<void> | undefined {
    return this.#flights.get(key);
  }

  /** Like `of`, for all keys. */
  async all(): Promise<void> {
    await Promise.all(this.#flights.values());
  }
}
