import { describe, expect, test } from "vitest";
import type { FoundThread } from "../../src/client/client.ts";
import { branchesOf, groupsOf } from "../../src/page/thread-groups.ts";

const NOW = new Date(2026, 5, 10, 12);
const daysAgo = (days: number) => new Date(NOW.getTime() - days * 86_400_000).toISOString();

function thread(id: string, days: number, from?: string): FoundThread {
  const at = daysAgo(days);
  return {
    ...{ id, metadata: {}, status: "idle", message_count: 2, created_at: at, updated_at: at },
    ...(from ? { forked_from: { thread_id: from } } : {}),
  };
}

const shown = (threads: readonly FoundThread[], asking: readonly string[] = []) =>
  groupsOf(threads, new Set(asking), NOW).map(({ title, rows }) => [
    title,
    ...rows.map((row) => (row.isBranch ? `- ${row.thread.id}` : row.thread.id)),
  ]);

describe("the thread list", () => {
  test("lists threads that wait for an answer first, however old, then the others by age", () => {
    const threads = [thread("now", 0), thread("week", 3), thread("old", 30), thread("asks", 90)];
    expect(shown(threads, ["asks"])).toEqual([
      ["Needs an answer", "asks"],
      ["Today", "now"],
      ["This week", "week"],
      ["Older", "old"],
    ]);
  });

  test("counts changes before midnight in the week, not today", () => {
    expect(shown([thread("evening", 0.6)])).toEqual([["This week", "evening"]]);
  });

  test("lists branches under their thread, in the position of the newest of them", () => {
    const threads = [thread("branch", 0, "origin"), thread("other", 0.1), thread("origin", 40)];
    expect(shown(threads)).toEqual([["Today", "origin", "- branch", "other"]]);
  });

  test("lists the branches of a deleted thread together, and one that comes from itself once", () => {
    const threads = [thread("b", 0, "gone"), thread("a", 0.1, "gone"), thread("self", 0.2, "self")];
    expect(shown(threads)).toEqual([["Today", "a", "- b", "self"]]);
  });

  test("finds a thread's position among its branches, and among those of branches", () => {
    const threads = [thread("c", 1, "b"), thread("b", 2, "a"), thread("a", 3), thread("alone", 4)];
    const branches = branchesOf(threads, "b");
    expect(branches?.of.map(({ id }) => id)).toEqual(["a", "b", "c"]);
    expect(branches?.at).toBe(1);
    expect(branchesOf(threads, "alone")).toBeUndefined();
  });
});
