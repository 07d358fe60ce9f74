// Reads a run to its end. Every test that does is a test of the grammar.

import { expect } from "vitest";
import type { Stream } from "../../src/agent/core/stream.ts";
import type { EventData, StreamEvent } from "../../src/protocol/event.ts";
import { checkGrammar } from "../../src/protocol/grammar.ts";

export async function drainRun<T>(
  stream: Stream<T>,
  onEvent: (event: StreamEvent) => unknown = () => {},
): Promise<{ events: StreamEvent[]; result: T }> {
  const events: StreamEvent[] = [];
  try {
    for (;;) {
      const item = await stream.next();
      if (item.done) {
        expect(checkGrammar(whole(events))).toEqual([]);
        return { events, result: item.value };
      }
      events.push(item.value);
      await onEvent(item.value);
    }
  } finally {
    await stream.return(undefined as never);
  }
}

/** A second attempt alone, read as a continuation of its run. */
function whole(events: StreamEvent[]): StreamEvent[] {
  if (events[0]?.event !== "run_resumed") return events;
  return [{ event: "run_start", data: { agent: "test", model: "test", attempt: 1 } }, ...events];
}

/** The data of every event of one kind. */
export function dataOf<N extends StreamEvent["event"]>(
  events: readonly StreamEvent[],
  name: N,
): EventData<N>[] {
  return events.filter((event) => event.event === name).map((event) => event.data as never);
}

export const names = (events: readonly StreamEvent[]) => events.map((event) => event.event);

/** The text that a viewer saw. */
export function textSeen(events: readonly StreamEvent[]): string {
  return dataOf(events, "on_chat_model_stream")
    .map((data) => ("delta" in data ? data.delta : ""))
    .join("");
}
