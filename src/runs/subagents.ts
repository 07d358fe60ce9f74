// What delegation needs of the engine. A child that its parent waits for is executed beside the slots of its process, as
// the parent holds one; one in the background is a run like any other.

import { setTimeout as sleep } from "node:timers/promises";
import { AppError, hasCode } from "../core/errors.ts";
import { isTerminal, type StreamEvent } from "../core/event.ts";
import type { Owner } from "../core/ids.ts";
import { isSettled, type RunRecord } from "../core/records.ts";
import type { EventLog, RunKey, StopMode, Stores } from "../core/stores.ts";
import type { AgentSummary, NewChild, Subagents } from "../core/subagents.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";
import { admitted } from "../quotas/holds.ts";
import type { Quotas } from "../quotas/index.ts";
import type { AgentSource } from "./services.ts";
import type { Starts } from "./start.ts";

/** How often a store that is away is tried again, in ms. */
const RETRY_MS = 500;

interface SubagentServices {
  readonly stores: Stores;
  readonly agents: Pick<AgentSource, "find">;
  readonly quotas?: Quotas | undefined;
  readonly runs: Pick<Starts, "start" | "resume"> & {
    /** Ends a run; `cancel` also one that waits for answers. Throws `not_found`, `run_not_active`. */
    end(owner: Owner, threadId: string, runId: string, mode: StopMode): Promise<RunRecord>;
  };
  /** Executes here what nobody executes on a thread. Never throws. */
  takeUp(owner: Owner, threadId: string): Promise<void>;
}

export function createSubagents(services: SubagentServices): Subagents {
  const { stores, agents, runs } = services;
  const newest = async (owner: Owner, threadId: string) =>
    (await stores.runs.list(owner, threadId, { limit: 1 })).items[0];

  return {
    newest,

    describe: (names) => names.flatMap((name) => describe(name, agents)),

    async begin(owner, child) {
      const there = await newest(owner, child.thread_id);
      if (there) return there;
      const isNew = await createThread(services, owner, child);
      const { thread_id, agent, messages, lineage } = child;
      const start = { settings: {}, metadata: {}, on_busy: "reject", idempotency_key: thread_id } as const;
      try {
        return await runs.start(owner, { ...start, thread_id, agent, messages, lineage });
      } catch (error) {
        if (isNew) await forget(services, owner, thread_id);
        throw error;
      }
    },

    async resume(owner, { run, lineage }, { answers, key }) {
      const last = await newest(owner, run.thread_id);
      if (last && last.resumes === run.id) return last;
      const { thread_id, id: run_id } = run;
      return runs.resume(owner, {
        ...{ thread_id, run_id, lineage, answers: [...answers], idempotency_key: key },
      });
    },

    events: (owner, run, signal) => events(services, { owner, run }, signal),

    async thread(owner, threadId) {
      const [messages, state] = await Promise.all([
        stores.threads.messages(owner, threadId),
        stores.threads.state(owner, threadId),
      ]);
      return { messages, state };
    },

    async stop(owner, { thread_id, id }, mode) {
      try {
        await runs.end(owner, thread_id, id, mode);
      } catch (error) {
        const isOver = (["run_not_active", "not_found", "thread_busy"] as const).some((code) =>
          hasCode(error, code),
        );
        if (!isOver) throw error;
      }
    },
  };
}

function describe(name: string, agents: SubagentServices["agents"]): AgentSummary[] {
  try {
    const found = agents.find(name);
    return [{ name: found.name, ...omitUndefined({ description: found.description, prefix: found.prefix }) }];
  } catch (error) {
    if (error instanceof AppError) return [];
    throw error;
  }
}

/** False when it is there already. */
async function createThread(
  { stores, quotas }: SubagentServices,
  owner: Owner,
  { thread_id: id, lineage }: NewChild,
): Promise<boolean> {
  const { parent, name: title } = lineage;
  // What it knows of the family lasts with the thread: whoever goes on with it works for the same.
  const news = { id, title, parent, metadata: {}, state: { lineage } };
  const create = () => stores.threads.create(owner, news);
  try {
    await (quotas ? admitted(quotas, { owner, thing: "threads", id }, create) : create());
    return true;
  } catch (error) {
    if (hasCode(error, "already_exists")) return false;
    throw error;
  }
}

async function forget({ stores, quotas }: SubagentServices, owner: Owner, id: string): Promise<void> {
  // What speaks against the run is what is told.
  await stores.threads.delete(owner, id).catch(() => {});
  await quotas?.release(owner, "threads", id).catch(() => {});
}

async function* events(
  { stores, takeUp }: SubagentServices,
  { owner, run }: { owner: Owner; run: RunRecord },
  signal: AbortSignal,
): AsyncGenerator<StreamEvent, void, void> {
  const { thread_id, id: run_id } = run;
  const key = { owner, thread_id, run_id };
  let isSilent = true;
  const look = async () => {
    if (isSilent) await takeUp(owner, thread_id);
    isSilent = true;
  };
  if (!isSettled(run.status)) await look();
  const timer = setInterval(() => void look(), stores.runs.leaseMs / 2).unref();
  try {
    for await (const batch of patiently(stores.events, key, signal)) {
      isSilent = false;
      // The log holds what `append` was given, and nothing else.
      for (const { json } of batch) yield JSON.parse(json) as StreamEvent;
    }
  } catch (error) {
    if (!hasCode(error, "events_expired")) throw error;
    yield* lastOf(stores, key, signal);
  } finally {
    clearInterval(timer);
  }
}

/** From the first entry on. A store that is away for a moment ends nothing. */
async function* patiently(log: EventLog, key: RunKey, signal: AbortSignal) {
  for (let cursor = 0; !signal.aborted; ) {
    try {
      for await (const batch of log.read(key, cursor, signal)) {
        yield batch;
        cursor = batch.at(-1)?.seq ?? cursor;
      }
      return;
    } catch (error) {
      if (!hasCode(error, "unavailable")) throw error;
      await sleep(RETRY_MS, undefined, { signal, ref: false }).catch(() => {});
    }
  }
}

/** Of a run whose beginning is gone: its end. */
async function* lastOf(
  { events }: Stores,
  key: RunKey,
  signal: AbortSignal,
): AsyncGenerator<StreamEvent, void, void> {
  const { last } = await events.bounds(key);
  if (last === 0) return;
  // As above.
  for await (const batch of events.read(key, last - 1, signal))
    for (const { event, json } of batch) if (isTerminal(event)) yield JSON.parse(json) as StreamEvent;
}
