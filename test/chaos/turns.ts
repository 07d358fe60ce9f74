// How long runs that waited for their thread had to wait once it was free.

import { begunIn } from "./begun.ts";
import type { ThreadOnRecord } from "./records.ts";

/** From the end of the run before, in ms. */
export function turnsOf(thread: ThreadOnRecord): number[] {
  const begun = begunIn(thread);
  return begun.flatMap(({ run, events }, index) => {
    const [before, first] = [begun[index - 1]?.run.ended_at, events[0]];
    if (before === undefined || run.created_at >= before || !first || !("ts" in first) || !first.ts)
      return [];
    return [Date.parse(first.ts) - Date.parse(before)];
  });
}
