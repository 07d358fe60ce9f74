// The runs of all threads, page by page. Reads them again when a run starts or ends.

import { useEffect, useRef, useState } from "preact/hooks";
import type { RunRecord } from "../../client/client.ts";
import { keepRead, type UserChange } from "../changes.ts";
import { client, messageOf } from "../session.ts";

const PAGE = 50;

interface RunFilter {
  readonly status: RunRecord["status"] | undefined;
  readonly agent: string | undefined;
  /** Includes only runs that started within this number of hours. */
  readonly hours: number | undefined;
}

interface RunsState {
  readonly runs?: readonly RunRecord[];
  readonly next?: string | undefined;
  readonly problem?: string;
}

export function useRuns({ status, agent, hours }: RunFilter) {
  const [read, setRead] = useState<RunsState>({});
  /** The number of pages to show. */
  const pages = useRef(1);
  useEffect(() => {
    pages.current = 1;
    setRead({});
    const isConcerned = ({ event }: UserChange) => event === "run_started" || event === "run_ended";
    const kept = keepRead(isConcerned, async (signal) => {
      try {
        setRead(await readPages({ status, agent, hours }, pages.current, signal));
      } catch (error) {
        if (!signal.aborted) setRead((before) => ({ ...before, problem: messageOf(error) }));
      }
    });
    return kept.end;
  }, [status, agent, hours]);

  return {
    runs: read.runs,
    problem: read.problem,
    hasMore: read.next !== undefined,
    more: async () => {
      const { runs, next } = await readPages({ status, agent, hours }, 1, undefined, read.next);
      pages.current++;
      setRead((before) => ({ runs: [...(before.runs ?? []), ...(runs ?? [])], next }));
    },
  };
}

async function readPages(
  { hours, ...wanted }: RunFilter,
  count: number,
  signal?: AbortSignal,
  from?: string,
): Promise<RunsState> {
  const since = hours === undefined ? 0 : Date.now() - hours * 3_600_000;
  const isWanted = (run: RunRecord) => Date.parse(run.created_at) >= since;
  let runs: RunRecord[] = [];
  let cursor = from;
  for (let page = 0; page < count; page++) {
    const { items, next_cursor } = await client.runs.list({ ...wanted, limit: PAGE, cursor }, signal);
    runs = [...runs, ...items.filter(isWanted)];
    cursor = items.every(isWanted) ? next_cursor : undefined;
    if (cursor === undefined) break;
  }
  return { runs, next: cursor };
}
