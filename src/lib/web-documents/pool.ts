// Reads untrusted documents in separate threads, so a hostile document cannot block other work. Threads start when they
// are needed.

import {
  DocumentError,
  type DocumentText,
  type Job,
  type JobReply,
  type ReadJob,
  type RobotsJob,
} from "./job.ts";
import { type DocumentThread, startThread } from "./thread.ts";

const MAX_THREADS = 2;
/** The maximum number of documents that wait for a thread. */
const MAX_WAITING = 256;

export interface DocumentPool {
  /**
   * `turn` identifies the waiting caller; callers without a thread get one first. Transfers the job's bytes to the
   * thread. Throws a `DocumentError` or the reason of `signal`.
   */
  read(job: ReadJob, turn: string, signal: AbortSignal): Promise<DocumentText>;
  isAllowed(job: RobotsJob, turn: string, signal: AbortSignal): Promise<boolean>;
  /** Ends all threads. */
  close(): Promise<void>;
}

interface DocumentTask {
  readonly job: Job;
  readonly turn: string;
  settle(reply: JobReply): void;
}

/** `limitMs` is the maximum time for one document, in milliseconds. */
export function createDocumentPool(limitMs: number): DocumentPool {
  const waitingTasks: DocumentTask[] = [];
  /** The threads and their current tasks. */
  const threads = new Map<DocumentThread, DocumentTask | undefined>();

  function free(): DocumentThread | undefined {
    const idle = [...threads.keys()].find((thread) => thread.isFree());
    if (idle || threads.size >= MAX_THREADS) return idle;
    const thread = startThread(limitMs, (ended) => threads.delete(ended));
    threads.set(thread, undefined);
    return thread;
  }

  function nextTask(): DocumentTask | undefined {
    const busy = new Set([...threads.values()].map((task) => task?.turn));
    const index = waitingTasks.findIndex(({ turn }) => !busy.has(turn));
    return waitingTasks.splice(Math.max(0, index), 1)[0];
  }

  /** Assigns the waiting tasks to idle threads. */
  async function proceed(): Promise<void> {
    while (waitingTasks.length > 0) {
      const thread = free();
      const task = thread && nextTask();
      if (!thread || !task) return;
      threads.set(thread, task);
      const reply = await thread.ask(task.job);
      if (threads.has(thread)) threads.set(thread, undefined);
      task.settle(reply);
    }
  }

  async function ask(job: Job, turn: string, signal: AbortSignal): Promise<DocumentText | boolean> {
    signal.throwIfAborted();
    if (waitingTasks.length >= MAX_WAITING)
      throw new DocumentError("must wait because too many documents are being read");
    const { promise, resolve, reject } = Promise.withResolvers<DocumentText | boolean>();
    const settle = (reply: JobReply) =>
      "answer" in reply ? resolve(reply.answer) : reject(new DocumentError(reply.fault));
    const task = { job, turn, settle };
    const leave = () => {
      reject(signal.reason);
      const place = waitingTasks.lastIndexOf(task);
      if (place >= 0) waitingTasks.splice(place, 1);
      for (const [thread, current] of threads) if (current === task) void thread.end("");
    };
    signal.addEventListener("abort", leave, { once: true });
    waitingTasks.push(task);
    void proceed();
    return promise.finally(() => signal.removeEventListener("abort", leave));
  }

  return {
    // The kind of job determines the kind of answer.
    read: async (job, turn, signal) => (await ask(job, turn, signal)) as DocumentText,
    isAllowed: async (job, turn, signal) => (await ask(job, turn, signal)) as boolean,
    async close() {
      for (const task of waitingTasks.splice(0)) task.settle({ fault: STOPS });
      await Promise.all([...threads.keys()].map((thread) => thread.end(STOPS)));
    },
  };
}

const STOPS = "cannot be read: the server stops";
