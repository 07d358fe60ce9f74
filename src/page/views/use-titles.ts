// Finds the titles of the threads that some runs belong to. Threads that are not in the thread list are read one by
// one.

import { useEffect, useState } from "preact/hooks";
import type { RunRecord } from "../../client/client.ts";
import { useTouched } from "../frame.ts";
import { client } from "../session.ts";
import { threads } from "../threads.ts";

/** Returns the titles by thread. A title is empty if the thread has none or no longer exists. */
export function useTitles(runs: readonly RunRecord[] | undefined): ReadonlyMap<string, string> {
  const { items } = useTouched(threads);
  const [read, setRead] = useState<ReadonlyMap<string, string>>(new Map());
  const listed = new Map(items.map(({ id, title = "" }) => [id, title]));
  const missing = [...new Set(runs?.map(({ thread_id }) => thread_id))].filter(
    (id) => !listed.has(id) && !read.has(id),
  );
  const [next] = missing;
  useEffect(() => {
    if (next === undefined) return;
    const ending = new AbortController();
    const keep = (title: string) =>
      !ending.signal.aborted && setRead((before) => new Map(before).set(next, title));
    client.threads.get(next, ending.signal).then(
      ({ title = "" }) => keep(title),
      () => keep(""),
    );
    return () => ending.abort();
  }, [next]);
  return new Map([...read, ...listed]);
}
