// Answers the questions of runs that wait for an account, once that account is connected.

import { hasCode } from "../../../agent/core/errors.ts";
import { isVisit } from "../../../agent/core/open-interrupts.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { Interrupt } from "../../../protocol/interrupt.ts";
import type { Runs } from "../../runs/executor.ts";
import { listInterrupts } from "../../runs/find.ts";
import { resumeRun } from "../../runs/start.ts";
import { waitingKeyOf } from "../../runs/waiting-key.ts";

const PAGE = 50;
/** The maximum number of a user's threads to check, most recently changed first. */
const MAX_THREADS = 1_000;

/** Error codes for questions that were already closed. */
const CLOSED = ["interrupt_closed", "run_not_active", "not_found"] as const;

/**
 * Approves the open questions about `server` in a user's threads. Each thread continues once, no matter how often this
 * is called with the same `key`. Throws if a run cannot be started now.
 */
export async function answerWaiting(runs: Runs, owner: Owner, server: string, key: string): Promise<void> {
  const failures: unknown[] = [];
  let cursor: string | undefined;
  for (let read = 0; read < MAX_THREADS; read += PAGE) {
    const page = await listInterrupts(runs.stores.threads, owner, {
      limit: PAGE,
      ...omitUndefined({ cursor }),
    });
    const asking = page.items.filter(
      (each) => each.kind === "connect" && each.name.startsWith(`mcp__${server}__`) && !isVisit(each),
    );
    const threads = Map.groupBy(asking, ({ thread_id }) => thread_id);
    for (const [thread_id, questions] of threads) {
      const approving = approve(runs, owner, { thread_id, questions, key });
      await approving.catch((error: unknown) => failures.push(error));
    }
    cursor = page.next_cursor;
    if (cursor === undefined) break;
  }
  // A thread that cannot continue does not hold up the others.
  if (failures.length > 0) throw failures[0];
}

interface AskingRun {
  readonly thread_id: string;
  readonly questions: readonly Interrupt[];
  readonly key: string;
}

async function approve(runs: Runs, owner: Owner, { thread_id, questions, key }: AskingRun): Promise<void> {
  const answers = questions.map(({ id }) => ({ id, decision: "approve" as const }));
  const run_id = questions[0]?.run_id ?? "";
  const begun_with = await waitingKeyOf(runs.stores.items, owner, thread_id);
  const resume = { thread_id, run_id, answers, begun_with, idempotency_key: `connect_${key}` };
  try {
    await resumeRun(runs, owner, resume);
  } catch (error) {
    if (!CLOSED.some((code) => hasCode(error, code))) throw error;
  }
}
