// Documents in the threads' file or in a separate file. Every result returned to a caller is on disk.

import type { Documents } from "../../../agent/core/documents.ts";
import type { CollectionKey } from "../row-keys.ts";
import { SQLITE } from "../sql/dialect.ts";
import { sqlDocuments } from "../sql/documents.ts";
import type { Database } from "./database.ts";
import { tickExecutor } from "./executor.ts";
import { Flights } from "./flights.ts";
import type { Retention } from "./retention.ts";
import type { SmallFile } from "./small-file.ts";

/**
 * If the file has no `flushed`, its writes are on disk at once. If there is no `retention`, no collection belongs to a
 * thread.
 */
export function sqliteDocuments(
  file: Pick<SmallFile, "query" | "read" | "write"> & Partial<Pick<Database, "flushed" | "assertOpen">>,
  clock: () => number,
  retention?: Pick<Retention, "visit">,
): Documents {
  const executor = tickExecutor(file);
  /** The commits that are not on disk yet, by the name of their collection. */
  const flights = new Flights();

  return sqlDocuments(SQLITE, (key) => ({
    clock,
    read: (statement) => visited(key, () => executor.read(statement)),

    async change(asked, decide) {
      let hasWritten = false;
      const { result, flushed } = await visited(key, () => {
        const result = executor.change(asked, (rows) => {
          const decided = decide(rows);
          hasWritten = decided.writes.length > 0;
          return decided;
        });
        const flushed = hasWritten ? file.flushed?.() : undefined;
        if (flushed) flights.add(key.name, flushed);
        return { result, flushed };
      });
      await flushed;
      return result;
    },
  }));

  /** Runs `work` in a tick of the event loop, after all removed data of the thread has been deleted. */
  async function visited<T>({ name, thread }: CollectionKey, work: () => T): Promise<T> {
    const visit = () => thread && retention?.visit(...thread);
    for (let rest = visit(); rest; rest = visit()) await rest;
    const flight = flights.of(name);
    try {
      return work();
    } finally {
      // The result may contain a document that another caller has just written.
      if (flight) await flight;
      file.assertOpen?.();
    }
  }
}
