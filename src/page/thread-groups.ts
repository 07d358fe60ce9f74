// Orders the thread list: open questions first, then by age, with each branch below its original thread.

import type { FoundThread } from "../client/client.ts";

export interface Row {
  readonly thread: FoundThread;
  /** True for a branch, which is shown below its original thread. */
  readonly isBranch: boolean;
}
export interface Group {
  readonly title: "Needs an answer" | "Today" | "This week" | "Older";
  readonly rows: readonly Row[];
}

/** `asking`: the ids of the threads with open questions. Returns only groups that have rows. */
export function groupsOf(
  threads: readonly FoundThread[],
  asking: ReadonlySet<string>,
  now = new Date(),
): Group[] {
  const waiting = threads.filter(({ id }) => asking.has(id));
  const families = familiesOf(threads.filter(({ id }) => !asking.has(id)));
  const ofAge = (title: Group["title"]): Group => ({
    title,
    rows: families.filter((family) => ageOf(family, now) === title).flatMap(rowsOf),
  });
  const first: Group = {
    title: "Needs an answer",
    rows: waiting.map((thread) => ({ thread, isBranch: false })),
  };
  return [first, ofAge("Today"), ofAge("This week"), ofAge("Older")].filter(({ rows }) => rows.length > 0);
}

/**
 * Returns a thread and its branches, oldest first, and the index of `id`, for `‹ 2/3 ›`. Returns undefined for a thread
 * that has no branches or is not in `threads`.
 */
export function branchesOf(
  threads: readonly FoundThread[],
  id: string,
): { readonly of: readonly FoundThread[]; readonly at: number } | undefined {
  const family = familiesOf(threads).find((each) => each.some((thread) => thread.id === id));
  if (!family || family.length < 2) return undefined;
  return { of: family, at: family.findIndex((thread) => thread.id === id) };
}

/**
 * Returns the families, starting with the most recent change. Within a family, the oldest thread, which is the
 * original, comes first.
 */
function familiesOf(threads: readonly FoundThread[]): FoundThread[][] {
  const byId = new Map(threads.map((thread) => [thread.id, thread]));
  const families = new Map<string, FoundThread[]>();
  for (const thread of threads) {
    const origin = originOf(thread, byId);
    families.set(origin, [...(families.get(origin) ?? []), thread]);
  }
  return [...families.values()].map((family) =>
    family.sort((a, b) => (a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : 0)),
  );
}

/** Returns the id of the thread from which the whole family was forked. That thread itself may be missing from the list. */
function originOf(thread: FoundThread, byId: ReadonlyMap<string, FoundThread>): string {
  const seen = new Set<string>();
  let at = thread;
  for (;;) {
    seen.add(at.id);
    const from = at.forked_from?.thread_id;
    if (from === undefined || seen.has(from)) return at.id;
    const origin = byId.get(from);
    if (!origin) return from;
    at = origin;
  }
}

const rowsOf = (family: readonly FoundThread[]): Row[] =>
  family.map((thread, place) => ({ thread, isBranch: place > 0 }));

const WEEK_MS = 7 * 86_400_000;

function ageOf(family: readonly FoundThread[], now: Date): Group["title"] {
  const newest = Math.max(...family.map(({ updated_at }) => Date.parse(updated_at)));
  if (newest >= new Date(now).setHours(0, 0, 0, 0)) return "Today";
  return newest >= now.getTime() - WEEK_MS ? "This week" : "Older";
}
