// Filters a list of threads, for stores that examine each thread of an owner.

import type { Thread } from "../../agent/core/records.ts";
import type { ThreadQuery } from "../../agent/core/stores.ts";
import { isIn } from "../../lib/search.ts";

export function fits(
  thread: Thread,
  { agent, status, q, parent, children }: Omit<ThreadQuery, "limit" | "cursor">,
): boolean {
  if (parent !== undefined && thread.parent?.thread_id !== parent) return false;
  if (parent === undefined && !children && thread.parent) return false;
  if (agent !== undefined && thread.agent !== agent) return false;
  if (status !== undefined && thread.status !== status) return false;
  return q === undefined || isIn(thread.title?.toLowerCase() ?? "", q.toLowerCase());
}
