// Connects delegation with the engine. A child that its parent waits for executes outside the slots, because the parent
// already occupies one. A background child is a run like any other.

import { setTimeout as sleep } from "node:timers/promises";
import { AppError, hasCode } from "../../agent/core/errors.ts";
import type { AgentSummary, NewChild, Subagents } from "../../agent/core/hook.ts";
import { isSettled, type Lineage, type RunRecord, type RunRequest } from "../../agent/core/records.ts";
import { storedEvent } from "../../agent/core/stored-json.ts";
import type { RunKey, Stores } from "../../agent/core/stores.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { freeTick } from "../../lib/ticks.ts";
import { isTerminal, type StreamEvent } from "../../protocol/event.ts";
import type { Owner } from "../../protocol/ids.ts";
import { withHold } from "../quotas/holds.ts";
import { keyOf, newestRun } from "./control.ts";
import type { Runs } from "./executor.ts";
import type { Agents } from "./services.ts";
import { endRun, resumeRun, startRun } from "./start.ts";
import { originOfChild } from "./tracing.ts";

/** The number of milliseconds to wait before retrying an unreachable store. */
const RETRY_MS = 500;

/** `engine` is called when a run first delegates, because runs need subagents and subagents need runs. */
export function createSubagents(engine: () => Runs): Subagents {
  const newest = (owner: Owner, threadId: string) => newestRun(engine().stores.runs, owner, threadId);

  return {
    newest,

    describe: (names) => names.flatMap((name) => describe(name, engine().agents)),

    begin: async (owner, child) => startChild(engine(), owner, child),

    async resume(owner, { run, lineage }, { answers, key }) {
      const last = await newest(owner, run.thread_id);
      if (last && last.resumes === run.id) return last;
      const { thread_id, id: run_id } = run;
      const runs = engine();
      const sender = senderFor(runs, lineage);
      const resume = { thread_id, run_id, lineage, answers: [...answers], idempotency_key: key };
      return resumeRun(runs, owner, { ...resume, ...sender });
    },

    events: (owner, run, signal) => attended(engine(), owner, run, signal),

    pause: (runId, signal) => engine().executor.pause(runId, signal),

    async thread(owner, threadId) {
      const { threads } = engine().stores;
      const [messages, state] = await Promise.all([
        threads.messages(owner, threadId),
        threads.state(owner, threadId),
      ]);
      return { messages, state };
    },

    async stop(owner, run, mode) {
      try {
        await endRun(engine(), keyOf(owner, run), mode);
      } catch (error) {
        const hasEnded = (["run_not_active", "not_found", "thread_busy"] as const).some((code) =>
          hasCode(error, code),
        );
        if (!hasEnded) throw error;
      }
    },
  };
}

async function startChild(runs: Runs, owner: Owner, child: NewChild): Promise<RunRecord> {
  // A run can start many subagents at once.
  await freeTick(owner.tenant);
  const existing = await newestRun(runs.stores.runs, owner, child.thread_id);
  if (existing) return existing;
  runs.executor.countSubagent(owner, child.lineage.root);
  const isNew = await createThread(runs, owner, child);
  const { thread_id, agent, messages, lineage } = child;
  const sender = senderFor(runs, lineage);
  try {
    return await startRun(runs, owner, {
      thread_id,
      agent,
      request: { input: [...messages], settings: {}, lineage, ...sender },
      metadata: {},
      on_busy: "reject",
      idempotency_key: thread_id,
    });
  } catch (error) {
    if (isNew) await deleteThread(runs, owner, thread_id);
    throw error;
  }
}

/**
 * Yields the events of a run. If the run produces no events for a long time, its process may have died, and this
 * process takes over the run.
 */
async function* attended(
  { stores, executor }: Runs,
  owner: Owner,
  run: RunRecord,
  signal: AbortSignal,
): AsyncGenerator<StreamEvent, void, void> {
  let isSilent = true;
  const adoptIfSilent = async () => {
    if (isSilent) await executor.adoptOrphan(owner, run.thread_id);
    isSilent = true;
  };
  if (!isSettled(run.status)) await adoptIfSilent();
  const timer = setInterval(() => void adoptIfSilent(), stores.runs.leaseMs / 2).unref();
  try {
    for await (const event of eventsOf(stores, keyOf(owner, run), signal)) {
      isSilent = false;
      yield event;
    }
  } finally {
    clearInterval(timer);
  }
}

/**
 * Returns the sender of the parent's run as the sender of the child, and the parent's call as the origin of the child's
 * trace.
 */
function senderFor(runs: Runs, { parent }: Lineage): Pick<RunRequest, "api_key" | "origin"> {
  const { origin, ...sender } = runs.executor.senderOf(parent.run_id);
  const traced = originOfChild(runs, { id: parent.run_id, origin }, parent.call_id);
  return { ...sender, ...omitUndefined({ origin: traced }) };
}

function describe(name: string, agents: Agents): AgentSummary[] {
  try {
    const found = agents.find(name);
    return [{ name: found.name, ...omitUndefined({ description: found.description, prefix: found.prefix }) }];
  } catch (error) {
    if (error instanceof AppError) return [];
    throw error;
  }
}

/** Returns false if the thread already exists. */
async function createThread({ stores, quotas }: Runs, owner: Owner, child: NewChild): Promise<boolean> {
  const { thread_id: id, lineage } = child;
  const { parent, name: title } = lineage;
  // The lineage is kept in the state, so every later run of the thread works for the same parent.
  const create = () => stores.threads.create(owner, { id, title, parent, metadata: {}, state: { lineage } });
  try {
    await (quotas ? withHold(quotas, { owner, id }, create) : create());
    return true;
  } catch (error) {
    if (hasCode(error, "already_exists")) return false;
    throw error;
  }
}

/** Never throws, because the caller reports why the child could not start. */
async function deleteThread({ stores, quotas }: Runs, owner: Owner, id: string): Promise<void> {
  await stores.threads.delete(owner, id).catch(() => {});
  await quotas?.release(owner, "threads", id).catch(() => {});
  await quotas?.recordStored(owner, id, 0).catch(() => {});
}

/**
 * Yields all events of a run, or only its last event if the first ones were dropped. Retries while the store is
 * unreachable.
 */
async function* eventsOf(
  { events }: Stores,
  key: RunKey,
  signal: AbortSignal,
): AsyncGenerator<StreamEvent, void, void> {
  for (let [cursor, endsOnly] = [0, false]; !signal.aborted; ) {
    try {
      for await (const batch of events.read(key, cursor, signal)) {
        for (const entry of batch) if (!endsOnly || isTerminal(entry.event)) yield storedEvent(entry);
        cursor = batch.at(-1)?.seq ?? cursor;
      }
      return;
    } catch (error) {
      if (hasCode(error, "unavailable"))
        await sleep(RETRY_MS, undefined, { signal, ref: false }).catch(() => {});
      else if (hasCode(error, "events_expired") && !endsOnly) {
        const { last } = await events.bounds(key);
        if (last === 0) return;
        [cursor, endsOnly] = [last - 1, true];
      } else throw error;
    }
  }
}
