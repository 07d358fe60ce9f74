// Those who follow threads: from the first run that they met they got each further one, in the order in which these
// were begun.

import { setTimeout as sleep } from "node:timers/promises";
import { begunIn } from "./begun.ts";
import type { ThreadCourse } from "./courses.ts";
import type { Journal } from "./journal.ts";
import type { RunOnRecord, ThreadOnRecord } from "./records.ts";

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
    const begun = begunIn(thread);
    for (const course of followers.filter((each) => each.thread === thread.thread.id)) {
      const due = () => dueTo(course, begun);
      const known = () => course.runs.filter((id) => begun.some(({ run }) => run.id === id));
      const hasAll = () => course.isBetweenRuns && known().join() === due().join();
      while (!hasAll() && !course.isOver && Date.now() < deadline) await sleep(LOOK_MS);
      if (!hasAll())
        journal.fault(
          `${thread.thread.id}: a follower got ${known().join()} up to ${course.cursor}, and should have got ${due().join()}`,
        );
    }
  }
}

/** The runs from the first that it got on; while it got none, those that had not ended when it was let in. */
function dueTo({ runs, openedAt }: ThreadCourse, begun: readonly RunOnRecord[]): string[] {
  const first = begun.findIndex(({ run }) =>
    runs.length > 0 ? runs.includes(run.id) : Date.parse(run.ended_at ?? "") > openedAt,
  );
  return first === -1 ? [] : begun.slice(first).map(({ run }) => run.id);
}
