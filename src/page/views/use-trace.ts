// Reads a trace again while its run is in progress.

import { useEffect, useState } from "preact/hooks";
import type { Trace } from "../../client/client.ts";
import { watch } from "../frame.ts";
import { client, messageOf } from "../session.ts";
import { extentOf } from "../spans.ts";
import { throttled } from "../throttled.ts";

const LEAST_MS = 1_000;

export interface TraceSource {
  readonly thread: string;
  readonly run: string;
  /**
   * An object that is touched while the run is in progress. If undefined, this hook follows the run's events itself.
   */
  readonly live?: object | undefined;
}

interface State {
  readonly trace?: Trace;
  readonly problem?: string;
}

/**
 * `now`, in ms since 1970, is an estimate of the server's clock: the end of the last finished span plus the time since
 * the read.
 */
export function useTrace({ thread, run, live }: TraceSource): State & { now: number } {
  const [state, setState] = useState<State>({});
  const now = useNow(state.trace);
  useEffect(() => {
    const ending = new AbortController();
    const { signal } = ending;
    let isFollowed = live !== undefined;
    const read = async () => {
      try {
        const trace = await client.runs.trace(thread, run, signal);
        setState({ trace });
        if (isFollowed || !isOpen(trace)) return;
        isFollowed = true;
        void follow({ thread, run }, again, signal);
      } catch (error) {
        if (!signal.aborted) setState((before) => ({ ...before, problem: messageOf(error) }));
      }
    };
    const again = throttled(read, LEAST_MS, signal);
    const end = live && watch(live, again);
    return () => {
      end?.();
      ending.abort();
    };
  }, [thread, run, live]);
  return { ...state, now };
}

const isOpen = ({ spans }: Trace) =>
  spans.length === 0 || spans.some(({ duration_ms }) => duration_ms === undefined);

async function follow({ thread, run }: TraceSource, then: () => void, signal: AbortSignal): Promise<void> {
  try {
    for await (const _ of client.runs.events(thread, run, {}, signal)) then();
  } catch {
    // The trace is read separately, and that read reports the error.
  }
}

/** Redraws every second while a span is open. */
function useNow(trace: Trace | undefined): number {
  const [known, setKnown] = useState({ end: 0, at: 0 });
  const [, tick] = useState(0);
  const end = trace ? extentOf(trace.spans).end : 0;
  if (end > known.end) setKnown({ end, at: performance.now() });
  const moves = trace !== undefined && isOpen(trace);
  useEffect(() => {
    if (!moves) return;
    const timer = setInterval(() => tick((count) => count + 1), LEAST_MS);
    return () => clearInterval(timer);
  }, [moves]);
  return known.end + (moves ? performance.now() - known.at : 0);
}
