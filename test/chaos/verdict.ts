// The verdict: whether what the servers have written down agrees with itself, and with all that users and readers
// saw. Each mismatch is a fault in the journal.

import { isSettled } from "../../src/agent/core/records.ts";
import type { Journal } from "./journal.ts";
import { judgeExecutions } from "./judge-executions.ts";
import { judgeFollowers } from "./judge-followers.ts";
import { judgeRun } from "./judge-run.ts";
import { judgeThread } from "./judge-thread.ts";
import type { Readers } from "./readers.ts";
import { readThread, type ThreadOnRecord } from "./records.ts";
import type { Replicas } from "./replicas.ts";
import { type TakeOver, takeOversOf } from "./take-overs.ts";
import { turnsOf } from "./turns.ts";

export interface Evidence {
  readonly replicas: Replicas;
  readonly readers: Readers;
  readonly journal: Journal;
  /** The calls whose commands were run, each as often as it was. */
  readonly executions: readonly string[];
}

export interface Times {
  readonly takeOvers: readonly TakeOver[];
  /** As `turnsOf`. */
  readonly turns: readonly number[];
}

export async function judge({ replicas, readers, journal, executions }: Evidence): Promise<Times> {
  const threads: ThreadOnRecord[] = [];
  const takeOvers: TakeOver[] = [];
  for (const [index, id] of [...journal.threads].entries()) {
    // Each thread by another one: all of them must tell the same.
    const thread = await readThread(replicas.up[index % replicas.up.length]?.url ?? "", id);
    if (thread) threads.push(thread);
  }
  for (const { runs, thread } of threads) {
    for (const run of runs) {
      journal.count(`runs ended: ${run.run.status}${run.run.error ? ` (${run.run.error.code})` : ""}`);
      journal.count("events", run.lines.length);
      if (!isSettled(run.run.status)) journal.fault(`${run.run.id} of ${thread.id} stays ${run.run.status}`);
      else judgeRun(run, journal);
      takeOvers.push(...takeOversOf(run, journal));
    }
  }
  for (const thread of threads) judgeThread(thread, journal);
  judgeSent(threads, journal);
  judgeExecutions(threads, executions, journal);
  await judgeFollowers(threads, readers.followers, journal);
  return { takeOvers, turns: threads.flatMap(turnsOf) };
}

/** What was accepted is there once; what was refused is not; and what is uncertain is there at most once. */
function judgeSent(threads: readonly ThreadOnRecord[], journal: Journal): void {
  const byId = new Map(threads.map((thread) => [thread.thread.id, thread]));
  for (const { text, thread, fate, run, message, busyWith } of journal.sent) {
    const record = byId.get(thread);
    const users = record?.messages.filter((each) => each.role === "user") ?? [];
    const found = users.filter(({ content }) => content === text);
    const name = `the ${fate} message "${text}" of ${thread} (${run ?? "no run"})`;
    if (found.length > 1) journal.fault(`${name} is there ${found.length} times`);
    if (fate === "refused" && found.length > 0) journal.fault(`${name} is in the thread`);
    if (message !== undefined && found.length === 1 && found[0]?.id !== message)
      journal.fault(`${name} is there as ${found[0]?.id}, not as ${message}`);
    const onRecord = record?.runs.find((each) => each.run.id === run);
    if (run !== undefined && !onRecord) journal.fault(`${name}: its run is not in the thread's list`);
    if (fate === "accepted" && found.length === 0 && !wasNeverBegun(onRecord))
      journal.fault(`${name} is not in the thread; its run ended ${JSON.stringify(onRecord?.run)}`);
    const other = record?.runs.find((each) => each.run.id === busyWith);
    if (other?.lines.some(({ data }) => data.includes(text)))
      journal.fault(`${name} was refused because of its own run ${busyWith}`);
  }
}

/** One that was cancelled while it waited adds nothing to its thread. */
function wasNeverBegun(run: ThreadOnRecord["runs"][number] | undefined): boolean {
  return run?.run.status === "cancelled" && run.events.map(({ event }) => event).join() === "run_start,done";
}
