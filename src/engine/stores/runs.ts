// The port for runs on top of a kernel. Every command is one decision of rules.ts.

import { areLong } from "../../agent/core/message.ts";
import { isSettled } from "../../agent/core/records.ts";
import type { Claim, ControlMessage, NewRun, RunStore } from "../../agent/core/stores.ts";
import { mostDeathsBeside } from "../../agent/core/trials.ts";
import { ownTick, sharedTick } from "../../lib/ticks.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Kernel, LookResult } from "./kernel.ts";
import { failedAfterCrashes, stamp } from "./outcomes.ts";
import * as rules from "./rules.ts";
import type { Decision, View } from "./thread-head.ts";

export function createRuns<Thread>(kernel: Kernel<Thread>): RunStore {
  const { limits } = kernel;
  let listener: ((call: ControlMessage) => void) | undefined;

  return {
    ...kernel.runs,
    leaseMs: limits.leaseMs,

    async list(owner, threadId, page) {
      await sharedTick(owner.tenant);
      return kernel.runs.list(owner, threadId, page);
    },

    subscribe(heard) {
      listener = heard;
      kernel.runs.subscribe(heard);
    },

    start(owner, run, whenBusy) {
      const lookups = { ...lookupsOf(run), isLikelyNew: run.rewind_to === undefined };
      return writing(owner, run, () =>
        kernel.change(kernel.ref(owner, run.thread_id), lookups, (view) =>
          rules.start(view, { owner, run, whenBusy, limits }),
        ),
      );
    },

    enqueue(owner, run, whenBusy) {
      const lookups = { ...lookupsOf(run), busyThreads: true as const };
      return writing(owner, run, () =>
        kernel.change(kernel.ref(owner, run.thread_id), lookups, (view) =>
          rules.enqueue(view, { owner, run, whenBusy, limits }),
        ),
      );
    },

    async claimNext(owner, threadId) {
      const looked = await take(kernel.ref(owner, threadId));
      return looked.found;
    },

    async claimAbandoned(limit, except = [], mostDeaths = Number.POSITIVE_INFINITY) {
      // Several threads can be checked at once, and earlier decisions count for later ones.
      const deaths = new Map<Thread, number>();
      return kernel.eachDue({ limit, except }, (thread) =>
        take(thread, (view) => {
          deaths.delete(thread);
          const most = Math.min(mostDeaths, mostDeathsBeside([...deaths.values()]));
          const decision = rules.takeOver(view, limits, most);
          const died = decision.result(view.now).claim?.deaths;
          if (died !== undefined) deaths.set(thread, died);
          return decision;
        }),
      );
    },

    async release(lease) {
      const thread = kernel.ref(lease.owner, lease.thread_id);
      await kernel.change(thread, { after: lease }, (view) => rules.release(view, lease));
    },

    async excuse(lease) {
      const thread = kernel.ref(lease.owner, lease.thread_id);
      await kernel.change(thread, {}, (view) => rules.excuse(view, lease));
    },

    async acquit(lease) {
      const thread = kernel.ref(lease.owner, lease.thread_id);
      await kernel.change(thread, {}, (view) => rules.acquit(view, lease));
    },

    async requestStop(owner, threadId, run, mode) {
      const thread = kernel.ref(owner, threadId);
      const record = await kernel.change(thread, { run }, (view) => rules.stop(view, mode));
      // Only the store knows when the run ended.
      return record && isSettled(record.status) ? kernel.runs.get(owner, threadId, run) : record;
    },

    steer(owner, threadId, runId, message) {
      const lookups = { message: message.id, inbox: true as const };
      return kernel.change(kernel.ref(owner, threadId), lookups, (view) =>
        rules.steer(view, runId, message, limits),
      );
    },
  };

  /** Returns the messages of a run's request that are not in its thread yet. */
  async function unreadOf({ lease: { owner, thread_id }, request: { input } }: Claim) {
    const found = await Promise.all(input.map(({ id }) => kernel.threads.message(owner, thread_id, id)));
    return input.filter((_, at) => !found[at]);
  }

  /** Ends a run whose process died too often, and takes the thread's next run. */
  async function take(
    thread: Thread,
    decide: (view: View) => Decision<rules.TakeOver> = (view) => rules.takeOver(view, limits),
  ): Promise<LookResult<Claim>> {
    for (;;) {
      const taken = await kernel.change(thread, { next: true }, decide);
      if (!taken.claim) return { until: taken.until };
      const { claim, spent } = taken;
      if (spent === undefined) return { found: claim };
      const entries = await kernel.logOf(claim.lease);
      const crashed = { attempts: spent, entries, unread: await unreadOf(claim) };
      const events = failedAfterCrashes(crashed, stamp(claim.lease, limits.now()));
      await kernel.events.append(claim.lease, events);
      const end = events.at(-1);
      if (end) listener?.({ call: "crashed", claim, end });
    }
  }
}

const lookupsOf = ({ id, idempotency_key: key, rewind_to: message, kept_to: last }: NewRun) => ({
  ...{ key, run: id, message, last },
  calls: message === undefined ? undefined : (true as const),
});

const writing = <T>({ tenant }: Owner, { request }: NewRun, write: () => Promise<T>): Promise<T> =>
  areLong(request.input) ? ownTick(tenant).then(write) : write();
