// Carries out the writes of a decision, and stores staged messages.

import { type Message, NO_USAGE } from "../../../agent/core/message.ts";
import { storedMessage } from "../../../agent/core/stored-json.ts";
import type { NewRun } from "../../../agent/core/stores.ts";
import { deepFreeze, jsonCopy } from "../../../lib/json.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { Kernel } from "../kernel.ts";
import { Log } from "../log.ts";
import { headAfter, type Write } from "../thread-head.ts";
import { adopt, commit, empty, fill, rewind, setInbox, setSlot, sizeOf } from "./commit-events.ts";
import type { MemoryThreads } from "./memory-threads.ts";
import { collectionBytes, isLive, type LiveRun, runOf, type ThreadEntry } from "./records.ts";
import { describe, newThread } from "./threads.ts";

/** The approximate size in bytes of a run in addition to its request and its events. */
const RUN_BYTES = 600;

interface Writes extends Pick<Kernel<unknown>, "stage" | "unstage"> {
  /** Returns the thread after the write. */
  carryOut(found: ThreadEntry | undefined, owner: Owner, write: Write, at: number): ThreadEntry | undefined;
  /** Restarts the lease of the thread's run. */
  hold(thread: ThreadEntry): void;
}

export function memoryWrites(memory: MemoryThreads): Writes {
  const staged = new Map<string, Message[]>();

  return {
    async stage(_, token, messages) {
      const list = staged.get(token) ?? [];
      staged.set(token, list);
      for (const { text } of messages) list.push(deepFreeze(storedMessage(text)));
    },

    async unstage(_, token) {
      staged.delete(token);
    },

    carryOut,
    hold: (thread) => hold(memory, thread),
  };

  function carryOut(
    found: ThreadEntry | undefined,
    owner: Owner,
    write: Write,
    at: number,
  ): ThreadEntry | undefined {
    if (write.write === "create_thread") {
      const thread = newThread(memory, owner, write.thread, at);
      describe(memory, thread, write.thread);
      fill(memory, thread, write.thread);
      if (write.staged) {
        adopt(memory, thread, staged.get(write.staged.token) ?? [], write.staged.bytes);
        staged.delete(write.staged.token);
      }
      return thread;
    }
    if (!found) throw new Error(`There is no thread for ${write.write}.`);
    const head = headAfter(found.head, write, owner);
    if (!head) {
      memory.remove(found);
      return undefined;
    }
    found.head = head;
    apply(memory, found, write, at);
    return found;
  }
}

function apply(memory: MemoryThreads, thread: ThreadEntry, write: Write, at: number): void {
  switch (write.write) {
    case "add_run":
      addRun(memory, thread, write, at);
      return;
    case "queue_run":
      memory.touch(thread);
      return;
    case "hold_run":
      beginWork(memory, thread, write);
      return;
    case "renew_run":
      hold(memory, thread);
      return;
    case "release_run":
      thread.isHeld = false;
      memory.turns.wait(thread.owner.tenant, thread);
      return;
    case "cancel_run":
      commit(memory, liveRun(thread, write.run), write.pending);
      return;
    case "leave_message": {
      const run = liveRun(thread, thread.head.active?.run ?? "");
      setInbox(memory, run, [...run.work.inbox, jsonCopy(write.message)]);
      return;
    }
    case "rewind":
      rewind(memory, thread, write.message);
      return;
    case "describe_thread":
      describe(memory, thread, write);
      for (const key of write.forget ?? []) setSlot(memory, thread, { write: "delete_state", key });
      memory.change(thread, memory.limits.now());
      return;
    case "clear_thread":
      clear(memory, thread);
      return;
    case "put_call":
      memory.keepCall({
        thread,
        call: jsonCopy(write.call),
        bytes: sizeOf(write.call),
        dueAt: write.due_at,
      });
      return;
    case "drop_call": {
      const call = thread.deferred?.get(write.call_id);
      if (call) memory.forgetCall(call);
      return;
    }
    case "create_thread":
    case "delete_thread":
    case "stop_run":
    case "excuse_run":
      return;
  }
}

type HoldRun = Extract<Write, { write: "hold_run" }>;

function beginWork(memory: MemoryThreads, thread: ThreadEntry, write: HoldRun): void {
  const run = liveRun(thread, write.run);
  run.status = "running";
  run.attempt = write.attempt;
  if (write.begins) run.begun = ++thread.begunCount;
  memory.touch(thread);
  hold(memory, thread);
}

function hold(memory: MemoryThreads, thread: ThreadEntry): void {
  thread.isHeld = true;
  memory.turns.hold(thread.owner.tenant, thread);
}

function addRun(memory: MemoryThreads, thread: ThreadEntry, { run: news, title }: AddRun, at: number): void {
  const run = newRun(memory, thread, news, at);
  thread.runs.push(run);
  if (thread.title === undefined) describe(memory, thread, { title });
  thread.agent = run.agent;
  memory.change(thread, run.createdAt);
  memory.weigh(thread, RUN_BYTES + run.work.requestBytes);
}

function newRun({ limits }: MemoryThreads, thread: ThreadEntry, news: NewRun, at: number): LiveRun {
  const { id, agent, metadata, idempotency_key: key, resumes } = news;
  const request = jsonCopy(news.request);
  return {
    thread,
    id,
    agent,
    metadata: { ...metadata },
    key,
    resumes,
    createdAt: at,
    status: "pending",
    attempt: 1,
    begun: undefined,
    usage: NO_USAGE,
    stopReason: undefined,
    details: undefined,
    error: undefined,
    endedAt: undefined,
    lastSeq: 0,
    work: { request, requestBytes: sizeOf(request), inbox: [] },
    log: new Log(limits.eventsPerRun),
  };
}

function clear(memory: MemoryThreads, thread: ThreadEntry): void {
  empty(memory, thread);
  memory.forgetCalls(thread);
  memory.weigh(thread, -collectionBytes(thread));
  thread.collections = undefined;
  thread.outcome = "idle";
  memory.change(thread, memory.limits.now());
  memory.touch(thread);
}

function liveRun(thread: ThreadEntry, id: string): LiveRun {
  const run = runOf(thread, id);
  if (!run || !isLive(run)) throw new Error(`Run ${id} has ended.`);
  return run;
}

type AddRun = Extract<Write, { write: "add_run" }>;
