// The one writer of a run: stamps events and writes them to the log, in order.

import { isProgress, type StreamEvent } from "../core/event.ts";
import type { EventLog, Lease } from "../core/stores.ts";

/** Events that may be on their way to the store at once; past it the run waits for the store. */
const MAX_UNWRITTEN = 256;

export interface RunWriter {
  /**
   * Resolves when a following step may rely on the events: at once for one that only shows progress, when they
   * are written for everything else. Throws what kept an earlier one from being written.
   */
  write(...events: readonly StreamEvent[]): Promise<void>;
}

export function createWriter(log: EventLog, lease: Lease): RunWriter {
  let unwritten = 0;
  let failure: unknown;

  const writeProgress = (event: StreamEvent) => {
    unwritten++;
    const written = log.append(lease, [stamp(event, lease)]).then(
      () => void unwritten--,
      (error: unknown) => {
        failure ??= error;
      },
    );
    return unwritten < MAX_UNWRITTEN ? undefined : written;
  };

  return {
    async write(...events) {
      if (failure) throw failure;
      const [event] = events;
      if (events.length === 1 && event && (event.path || isProgress(event.event))) await writeProgress(event);
      else
        await log.append(
          lease,
          events.map((each) => stamp(each, lease)),
        );
    },
  };
}

function stamp(event: StreamEvent, { run_id, thread_id }: Lease): StreamEvent {
  if (event.event === "on_chat_model_stream") return event;
  const { event: name, data, ...rest } = event;
  // What a subagent says is said by its own run.
  const ids = rest.path ? { run_id, thread_id, ...rest } : { ...rest, run_id, thread_id };
  // Only the order of the keys changes, and what every event has.
  return { event: name, ...ids, ts: new Date().toISOString(), data } as StreamEvent;
}
