// The engine. Executes runs in this process, and resumes threads when their deferred results arrive.

import type { UserMessage } from "../../agent/core/message.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { Owner } from "../../protocol/ids.ts";
import { newestRun } from "./control.ts";
import { resumeDeferred, steerLateResults } from "./deferred.ts";
import { Executor, type ExecutorOptions, type Runs } from "./executor.ts";
import { startRun } from "./start.ts";
import { createSubagents } from "./subagents.ts";

/** The number of milliseconds between two checks for threads that no process has resumed yet. */
const RESUME_MS = 5_000;
/** The number of milliseconds between two removals of expired records of accepted results. */
const SWEEP_MS = 60_000;

export interface Engine extends Runs {
  /** Executes the runs that earlier processes left behind. Call this once, before the first run starts. */
  open(): Promise<void>;
  /** See `Executor.close`. */
  close(graceMs: number): Promise<void>;
}

export function createEngine(options: ExecutorOptions): Engine {
  const subagents = createSubagents(() => engine);
  const executor = new Executor({ ...options, subagents });
  let timers: NodeJS.Timeout[] = [];
  const engine: Engine = {
    ...options,
    subagents,
    executor,
    async open() {
      await executor.open();
      timers = [
        setInterval(() => void resumeThreads(engine), RESUME_MS),
        setInterval(() => void options.deliveries?.sweep(), SWEEP_MS),
      ];
      for (const timer of timers) timer.unref();
    },
    close(graceMs) {
      for (const timer of timers) clearInterval(timer);
      return executor.close(graceMs);
    },
  };
  return engine;
}

/** Returns true if a result for this token can be delivered, or has already been delivered. */
export const isDeliverable = async ({ stores, deliveries }: Runs, tokenHash: string): Promise<boolean> =>
  (await stores.deferredCalls.isKept(tokenHash)) || Boolean(await deliveries?.isTaken(tokenHash));

/**
 * Accepts a deferred result by the hash of its token. This process or another one passes the result on to the thread. A
 * repeated delivery of the same result is accepted too. Returns false if no call is waiting for this result.
 */
export async function deliverResult(
  runs: Runs,
  tokenHash: string,
  reply: Record<string, unknown>,
): Promise<boolean> {
  const call = await runs.stores.deferredCalls.deliver(tokenHash, reply);
  if (!call) return Boolean(await runs.deliveries?.isSame(tokenHash, reply));
  await runs.deliveries?.keep(tokenHash, reply);
  runs.onDelivered?.(call.state === "late" ? "late" : "delivered");
  await steerLateResults(runs.stores, [call]);
  void resumeThreads(runs);
  return true;
}

/** Resumes the threads whose deferred results have arrived or expired. Never throws. */
export async function resumeThreads(runs: Runs): Promise<void> {
  if (runs.executor.isClosing) return;
  const { stores, logger } = runs;
  const start = async (owner: Owner, thread_id: string, input: readonly UserMessage[]) => {
    const last = await newestRun(stores.runs, owner, thread_id);
    const resumes = input.length === 0 && last?.status === "interrupted" ? last.id : undefined;
    const request = { input: [...input], settings: {} };
    return startRun(runs, owner, {
      thread_id,
      request,
      metadata: {},
      on_busy: "reject",
      ...omitUndefined({ resumes }),
    });
  };
  await resumeDeferred({ stores, logger, start });
}
