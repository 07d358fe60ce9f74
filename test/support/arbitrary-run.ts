// Legal turns of any shape: the runs and their events as the server writes them, for properties of their readers.

import type fc from "fast-check";
import type { StreamEvent } from "../../src/protocol/event.ts";
import { type StoryValue, story } from "./turns/story.ts";
import { type ToldRun, tellTurn } from "./turns/tell.ts";

export { RUN } from "./turns/events.ts";
export type { ToldRun } from "./turns/tell.ts";

/** The runs of one turn, each with its own record. The last one may still wait. */
export const arbitraryTurn: fc.Arbitrary<ToldRun[]> = story.map(tellTurn);

/** The events of the first run of a turn, which ends the stream of its reader: it waits for no deferred result. */
export const arbitraryRun: fc.Arbitrary<StreamEvent[]> = story.map((told) => {
  const [first] = tellTurn(withoutDeferred(told));
  return [...(first?.events ?? [])];
});

const withoutDeferred = ({ steps, ...rest }: StoryValue): StoryValue => ({
  ...rest,
  hasLeft: false,
  steps: steps.map((step) => ({
    ...step,
    calls: step.calls.map((call) => (call.waits === "deferred" ? { ...call, waits: undefined } : call)),
  })),
});

/** The runs of a turn that one stream shows: up to the first that ends otherwise than waiting for a deferred result. */
export const arbitraryStream: fc.Arbitrary<ToldRun[]> = arbitraryTurn.map((turn) => {
  const last = turn.findIndex(({ events }) => !waits(events));
  return last < 0 ? turn : turn.slice(0, last + 1);
});

/** Whether a run waits for a deferred result, and asks nothing. */
export function waits(events: readonly StreamEvent[]): boolean {
  const end = events.at(-1);
  const asks = events.some(({ event, path }) => event === "on_interrupt" && !path);
  return end?.event === "done" && end.data.stop_reason === "tool_use" && !asks;
}
