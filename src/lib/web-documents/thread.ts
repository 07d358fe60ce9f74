// A thread that reads documents one at a time. It ends if a document takes too much time or memory, or after it has
// been idle.

import { Worker } from "node:worker_threads";
import { moduleUrl } from "../paths.ts";
import type { Job, JobReply } from "./job.ts";

const IDLE_MS = 30_000;
const HEAP_MB = 256;
/** The maximum size in bytes of buffers, to which the heap's limit does not apply. */
const MAX_EXTERNAL_BYTES = 256 * 1024 * 1024;
const LOOK_EACH_MS = 100;

export interface DocumentThread {
  isFree(): boolean;
  /**
   * Transfers the job's bytes to the thread. Never rejects, because the end of the thread counts as a fault of its
   * document.
   */
  ask(job: Job): Promise<JobReply>;
  /** Ends the thread. `fault` is the answer to the current job. */
  end(fault: string): Promise<void>;
}

/**
 * `limitMs` is the maximum time for one document, in milliseconds. `onEnd` is called once, before the current job gets
 * its fault.
 */
export function startThread(limitMs: number, onEnd: (thread: DocumentThread) => void): DocumentThread {
  const worker = new Worker(new URL(moduleUrl("lib/web-documents/worker")), {
    name: "web-documents",
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 },
  });
  let settle: ((reply: JobReply) => void) | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isOnline = false;
  let isOver = false;

  const finish = (reply: JobReply) => {
    clearTimeout(timer);
    worker.unref();
    timer = setTimeout(() => end(""), IDLE_MS).unref();
    const tell = settle;
    settle = undefined;
    tell?.(reply);
  };
  const end = async (fault: string) => {
    if (!isOver) {
      isOver = true;
      onEnd(thread);
      finish({ fault });
      clearTimeout(timer);
    }
    await worker.terminate();
  };
  const watch = () => {
    let until = performance.now() + limitMs;
    timer = setInterval(async () => {
      // The thread's startup does not count towards the document's time.
      if (!isOnline) until = performance.now() + limitMs;
      if (performance.now() > until) return end(`takes longer than ${limitMs / 1000} s to read`);
      const asked = settle;
      const used = await worker.getHeapStatistics().catch(() => undefined);
      if (settle === asked && (used?.external_memory ?? 0) > MAX_EXTERNAL_BYTES) await end(TOO_LARGE);
    }, LOOK_EACH_MS);
  };

  worker.unref();
  worker.on("online", () => {
    isOnline = true;
  });
  worker.on("message", finish);
  worker.on("error", (error) => end(isOutOfMemory(error) ? TOO_LARGE : UNREADABLE));
  worker.on("exit", () => end(UNREADABLE));
  const thread: DocumentThread = {
    isFree: () => !settle && !isOver,
    ask(job) {
      clearTimeout(timer);
      const { promise, resolve } = Promise.withResolvers<JobReply>();
      settle = resolve;
      worker.ref();
      watch();
      worker.postMessage(job, "bytes" in job ? [job.bytes.buffer as ArrayBuffer] : []);
      return promise;
    },
    end,
  };
  return thread;
}

const TOO_LARGE = "needs too much memory to read";
const UNREADABLE = "cannot be read";

const isOutOfMemory = (error: Error) => "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
