// The way from a message or a call to its span. A thread's messages do not say which run wrote them: their times do.

import type { Run } from "../client/client.ts";
import { go } from "./routes.ts";
import { runAmong, type Times } from "./run-among.ts";
import { client } from "./session.ts";
import { t } from "./texts.ts";

const PAGE = 50;
/** Pages of runs that are looked through. */
const MOST_PAGES = 20;

/** Opens the trace of the run that was at work at that time, at the span of the message or call. Throws when there is none. */
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
