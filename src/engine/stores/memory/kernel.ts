// Threads, runs and deferred calls in memory. Every change happens in one tick of the event loop. Stored values are
// copies. Returned values are copies, or frozen in the case of messages, so no caller can change stored data.

import type { Owner } from "../../../protocol/ids.ts";
import type { Kernel } from "../kernel.ts";
import { needsRoom } from "../thread-head.ts";
import { memoryDue } from "./due.ts";
import { memoryEvents } from "./events.ts";
import type { MemoryThreads } from "./memory-threads.ts";
import { memoryReads } from "./reads.ts";
import { viewOf } from "./views.ts";
import { memoryWrites } from "./writes.ts";

interface Ref {
  readonly owner: Owner;
  readonly id: string;
}

export function memoryKernel(memory: MemoryThreads): Kernel<Ref> {
  const { limits, calls } = memory;
  const writes = memoryWrites(memory);

  return {
    limits,
    ref: (owner, id) => ({ owner, id }),

    async change(ref, lookups, decide) {
      const thread = memory.find(ref.owner, ref.id);
      const view = viewOf(memory, thread, ref.owner, lookups);
      const decision = decide(view);
      if (decision.writes.some(needsRoom)) memory.makeRoom(ref.owner.tenant, thread);
      let written = thread;
      for (const write of decision.writes) written = writes.carryOut(written, ref.owner, write, view.now);
      if (decision.tell) calls.publish(decision.tell);
      return decision.result(view.now);
    },

    stage: writes.stage,
    unstage: writes.unstage,

    async logOf({ owner, thread_id, run_id }) {
      return memory.findRun(owner, thread_id, run_id)?.log?.entries ?? [];
    },

    async findCall(tokenHash) {
      const found = memory.findCall(tokenHash);
      return found && { thread: found.thread, call_id: found.call.call_id };
    },

    ...memoryDue(memory),
    events: memoryEvents(memory),
    ...memoryReads(memory, writes.hold),
  };
}
