// Writes the events of a run to its log. Progress events are written with a short delay; the run waits until all others
// are written. An event that belongs to the next one is written together with it.

import type { EventLog, Lease } from "../../agent/core/stores.ts";
import { type DeltaSink, isWithNext } from "../../agent/core/stream.ts";
import { isoTime } from "../../lib/iso-time.ts";
import { isProgress, type StreamEvent } from "../../protocol/event.ts";

/** The maximum number of unwritten events. At this limit, the run waits for the store. */
const MAX_UNWRITTEN = 256;

export interface RunWriter {
  /**
   * Writes a delta or another progress event with a short delay. Returns false and does nothing if `write` would have
   * to wait or throw.
   */
  take: DeltaSink;
  /**
   * Resolves at once for a progress event and for an event that belongs to the next one. Otherwise, resolves when these
   * events and all earlier ones are written. Throws the error that prevented a write.
   */
  write(...events: readonly StreamEvent[]): Promise<void>;
}

/** Creates the only writer of a run, which adds timestamps to events and appends them to the log in order. */
export function createWriter(
  log: EventLog,
  lease: Lease,
  onStored: (ms: number) => void = () => {},
): RunWriter {
  let unwritten = 0;
  let failure: unknown;

  const onWritten = () => void unwritten--;
  const onFailure = (error: unknown) => {
    failure ??= error;
  };
  const writeProgress = (event: StreamEvent) => {
    unwritten++;
    const written = log.append(lease, [stamp(event, lease)]).then(onWritten, onFailure);
    return unwritten < MAX_UNWRITTEN ? undefined : written;
  };

  return {
    take(event) {
      if (failure || unwritten >= MAX_UNWRITTEN) return false;
      void writeProgress(event);
      return true;
    },
    async write(...events) {
      if (failure) throw failure;
      const [event] = events;
      if (events.length === 1 && event && !isWaitedFor(event)) await writeProgress(event);
      else {
        const begun = performance.now();
        const stamped = events.map((each) => stamp(each, lease));
        await log.append(lease, stamped);
        if (failure) throw failure;
        onStored(performance.now() - begun);
      }
    },
  };
}

const isWaitedFor = (event: StreamEvent) => !event.path && !isProgress(event.event) && !isWithNext(event);

function stamp(event: StreamEvent, { run_id, thread_id }: Lease): StreamEvent {
  if (event.event === "on_chat_model_stream") return event;
  const ts = isoTime();
  // Only changes the order of the keys and the common fields.
  if (event.path) {
    const { event: kind, data, ...rest } = event;
    // An event of a subagent keeps the ids of the subagent's run.
    return { event: kind, run_id, thread_id, ...rest, ts, data } as StreamEvent;
  }
  const name = "name" in event ? event.name : undefined;
  return { event: event.event, name, run_id, thread_id, ts, data: event.data } as StreamEvent;
}
