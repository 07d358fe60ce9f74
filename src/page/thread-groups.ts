// The order of the thread list: what waits first, then by age, each branch under the thread that it began as a copy of.

import type { FoundThread } from "../client/client.ts";

export interface Row {
  readonly thread: FoundThread;
  /** Shown under the thread that it comes from. */
  readonly isBranch: boolean;
}
export interface Group {
  readonly title: "Needs an answer" | "Today" | "This week" | "Older";
  readonly rows: readonly Row[];
}

/** `asking`: the ids of the threads with open questions. Groups without rows are absent. */
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
 * A thread and its branches, oldest first, with the place of `id` among them: for `‹ 2/3 ›`. Undefined for one without
 * branches, or that is not among `threads`.
 */
export function branchesOf(
  threads: readonly FoundThread[],
  id: string,
): { readonly of: readonly FoundThread[]; readonly at: number } | undefined {
  const family = familiesOf(threads).find((each) => each.some((thread) => thread.id === id));
  if (!family || family.length < 2) return undefined;
  return { of: family, at: family.findIndex((thread) => thread.id === id) };
}

/** In the order of the newest change in each; in a family the oldest comes first, which is where the others come from. */
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

/** The id of the thread that all of its family were forked from. That thread may be missing from the list: its id is enough. */
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
