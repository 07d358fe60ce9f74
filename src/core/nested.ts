// What others say within a tool call: whatever becomes of the call, each of their brackets is closed before its end.

import type { ErrorInfo } from "./errors.ts";
import type { StreamEvent } from "./event.ts";
import { failedEnd, openings } from "./grammar.ts";
import { type Stream, tap } from "./stream.ts";

interface Nested {
  see(event: StreamEvent): void;
  /** Passes `work` on, and sees what is nested in it. */
  through<T>(work: Stream<T>): Stream<T>;
  /** The ends of what is still open, the innermost first. */
  ends(error: ErrorInfo): StreamEvent[];
}

export function nested(): Nested {
  const open = openings();
  return {
    see: open.see,
    through: (work) =>
      tap(work, (event) => {
        if (isNested(event)) open.see(event);
      }),
    ends(error) {
      const ends = open
        .list()
        .reverse()
        .map((opening) => failedEnd(opening, error));
      for (const end of ends) open.see(end);
      return ends;
    },
  };
}

const isNested = ({ event, path }: StreamEvent) =>
  path !== undefined || event === "on_subagent_start" || event === "on_subagent_end";
