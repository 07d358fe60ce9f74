// What the runs of a thread have used together.

import { z } from "zod";
import type { Owner } from "../core/ids.ts";
import { addUsage, NO_USAGE, Usage } from "../core/message.ts";
import type { RunStore } from "../core/stores.ts";
import { given } from "../lib/given.ts";

const PAGE = 200;
/** A thread of more runs is counted by its newest ones. */
const MAX_RUNS = 10_000;

export const ThreadUsage = Usage.extend({
  runs: z.int().describe(`How many runs these are: the newest ${MAX_RUNS} at most.`),
  cache_hit_ratio: z
    .number()
    .optional()
    .describe("Which part of the input the provider had kept. Absent without any input."),
}).meta({ id: "ThreadUsage" });
export type ThreadUsage = z.infer<typeof ThreadUsage>;

export async function threadUsage(store: RunStore, owner: Owner, threadId: string): Promise<ThreadUsage> {
  let usage = NO_USAGE;
  let runs = 0;
  let cursor: string | undefined;
  do {
    const page = await store.list(owner, threadId, { limit: PAGE, ...given({ cursor }) });
    for (const run of page.items) usage = addUsage(usage, run.usage);
    runs += page.items.length;
    cursor = page.next_cursor;
  } while (cursor !== undefined && runs < MAX_RUNS);
  const { input_tokens, cache_read_tokens } = usage;
  return {
    ...usage,
    runs,
    ...(input_tokens > 0 ? { cache_hit_ratio: cache_read_tokens / input_tokens } : {}),
  };
}
