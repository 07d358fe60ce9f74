// Changes a thread's messages without calling its model: a single run removes messages, adds others and ends. The run
// is accepted atomically. After a crash, either the thread is unchanged or the run continues. The run counts only
// towards the quota for stored bytes.

import { AppError } from "../../agent/core/errors.ts";
import { type Message, unanswered } from "../../agent/core/message.ts";
import { newRunId } from "../../agent/core/new-ids.ts";
import type { RunRecord, Thread } from "../../agent/core/records.ts";
import type { NewRun } from "../../agent/core/stores.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { isTickSpent, sharedTick } from "../../lib/ticks.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Interrupt } from "../../protocol/interrupt.ts";
import { assertNoBranch, isSame } from "./branches.ts";
import { keyOf, settledRun } from "./control.ts";
import type { Runs } from "./executor.ts";
import { acceptWithBranch, runOf } from "./start.ts";
import { bytesWith, storing, THREAD_BYTES } from "./thread-bytes.ts";

/**
 * Returns the open calls of a waiting thread that will be answered by the server's own tools or by people rather than
 * by a client.
 */
export function awaitedCalls(
  { status }: Pick<Thread, "status">,
  messages: readonly Message[],
  questions: readonly Interrupt[],
): ReadonlySet<string> {
  if (status !== "interrupted") return new Set();
  const ofClient = new Set(questions.flatMap(({ kind, call_id }) => (kind === "tool" ? [call_id] : [])));
  return new Set(unanswered(messages).flatMap(({ id }) => (ofClient.has(id) ? [] : [id])));
}

/** Appends messages. Throws `thread_busy` or `limit_exceeded`. */
export async function appendMessages(
  runs: Runs,
  owner: Owner,
  thread: Thread,
  messages: readonly Message[],
): Promise<RunRecord> {
  const place = { owner, thread_id: thread.id };
  const { stores, quotas, threadBytes } = runs;
  const before = await stores.threads.bytes(owner, thread.id);
  const bytes = await bytesWith(before, place, messages, threadBytes);
  const change = { input: messages, appends: true } as const;
  return storing({ threads: stores.threads, quotas }, place, { bytes, isNew: false }, () =>
    rewriteThread(runs, owner, thread, change),
  );
}

/**
 * Replaces the messages of a thread, `ours`, with `theirs`. Removed messages become a branch. Returns undefined if the
 * thread already contains exactly these messages. Throws `thread_busy` or `limit_exceeded`.
 */
export async function replaceMessages(
  runs: Runs,
  owner: Owner,
  thread: Thread,
  { ours, theirs }: { readonly ours: readonly Message[]; readonly theirs: readonly Message[] },
): Promise<RunRecord | undefined> {
  const shared = await sharedBeginning(owner.tenant, ours, theirs);
  const [input, replaced] = [theirs.slice(shared), ours[shared]];
  if (!replaced) return input.length === 0 ? undefined : appendMessages(runs, owner, thread, input);
  const place = { owner, thread_id: thread.id };
  // A thread that is over its limit can still shrink.
  const before = await runs.stores.threads.bytes(owner, thread.id);
  await bytesWith(0, place, theirs, Math.max(before, runs.threadBytes ?? THREAD_BYTES));
  return rewriteThread(runs, owner, thread, { input, appends: true, replaces: replaced.id });
}

/** The messages that a run adds, and the fields of its request that identify the messages to replace. */
export interface RewriteRequest
  extends Pick<NewRun["request"], "replaces" | "restores" | "appends">,
    Pick<NewRun, "idempotency_key"> {
  readonly input: readonly Message[];
}

/** Throws `thread_busy` or `limit_exceeded`. */
export async function rewriteThread(
  runs: Runs,
  owner: Owner,
  { id: thread_id, agent }: Thread,
  { input, idempotency_key, ...change }: RewriteRequest,
): Promise<RunRecord> {
  assertNoBranch(thread_id);
  const run = {
    ...{ id: newRunId(), thread_id, agent: runs.agents.find(agent).name, metadata: {} },
    request: { input: [...input], settings: {}, cancel: true as const, ...change },
    ...omitUndefined({ rewind_to: change.replaces, idempotency_key }),
  };
  return runOf(await acceptWithBranch(runs, owner, run, "reject"));
}

/**
 * Returns the run after it ends. If `signal` aborts first, for example while the run waits for a free slot, returns the
 * run's current state. Throws the reason if the run fails.
 */
export async function rewritten(
  runs: Runs,
  owner: Owner,
  begun: RunRecord,
  signal: AbortSignal,
): Promise<RunRecord> {
  const run = await settledRun(runs, keyOf(owner, begun), signal);
  if (run.status !== "error") return run;
  throw new AppError("unavailable", run.error?.message ?? "The thread could not be changed. Try again.");
}

/** Returns the number of messages at the beginning of both lists that are the same. */
export async function sharedBeginning(
  tenant: string,
  ours: readonly Message[],
  theirs: readonly Message[],
): Promise<number> {
  for (const [at, message] of theirs.entries()) {
    if (isTickSpent()) await sharedTick(tenant);
    const other = ours[at];
    if (!other || !isSame(other, message)) return at;
  }
  return theirs.length;
}
