// Finds the span of a message or call. A thread's messages do not contain their run, so their times identify it.

import type { Run } from "../client/client.ts";
import { go } from "./routes.ts";
import { runAmong, type Times } from "./run-among.ts";
import { client } from "./session.ts";
import { t } from "./texts.ts";

const PAGE = 50;
/** The maximum number of pages of runs to search. */
const MOST_PAGES = 20;

/**
 * Opens the trace of the run that was active at that time, at the span of the message or call. Throws if there was no
 * such run.
 */
export async function openSpan(thread: string, span: string, at: string): Promise<void> {
  const run = await runAt(thread, Date.parse(at));
  if (!run) throw new Error(t().trace.noRun);
  go({ view: "thread", thread, run: run.id, tab: "trace", span });
}

async function runAt(thread: string, at: number): Promise<(Times & Pick<Run, "id">) | undefined> {
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES; page++) {
    const { items, next_cursor } = await client.runs.of(thread, { limit: PAGE, cursor });
    const found = runAmong(items, at);
    if (found || next_cursor === undefined) return found;
    cursor = next_cursor;
  }
  return undefined;
}
