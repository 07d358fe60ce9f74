// Those who follow threads: from the first run that they met they got each further one, in the order in which these
// were begun.

import { setTimeout as sleep } from "node:timers/promises";
import { begunIn } from "./begun.ts";
import type { ThreadCourse } from "./courses.ts";
import type { Journal } from "./journal.ts";
import type { ThreadOnRecord } from "./records.ts";

/** Notice of a run may be lost; then a server looks for it every ten seconds, and a busy machine takes longer. */
const LATE_MS = 120_000;
const LOOK_MS = 50;

/** Waits a bounded time until all of them have read every event. */
export async function judgeFollowers(
  threads: readonly ThreadOnRecord[],
  followers: readonly ThreadCourse[],
  journal: Journal,
): Promise<void> {
  const deadline = Date.now() + LATE_MS;
  for (const thread of threads) {
    const begun = begunIn(thread).map(({ run }) => run.id);
    for (const course of followers.filter((each) => each.thread === thread.thread.id)) {
      const hasAll = () =>
        course.isBetweenRuns && (begun.length === 0 || course.runs.includes(begun.at(-1) ?? ""));
      while (!hasAll() && !course.isOver && Date.now() < deadline) await sleep(LOOK_MS);
      const known = course.runs.filter((run) => begun.includes(run));
      const due = begun.slice(begun.indexOf(known[0] ?? ""));
      if (!hasAll() || known.join() !== due.join())
        journal.fault(
          `${thread.thread.id}: a follower got ${known.join()} up to ${course.cursor}, and should have got ${due.join()}`,
        );
    }
  }
}
