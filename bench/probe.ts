// Loaded into a server before its own program, to answer questions from the parent process that the server itself
// cannot answer. `memory` returns the memory in use after a full collection. `profile` starts to record CPU time, and
// `profiled` stops and returns the record. `turns` starts to look for the longest tick of the event loop, and `turned`
// stops and returns its CPU time.

import type { Profiler } from "node:inspector";
import { Session } from "node:inspector/promises";
import { setTimeout as sleep } from "node:timers/promises";

/** In bytes. */
export interface Memory {
  readonly heap: number;
  readonly rss: number;
}

export type Profile = Profiler.Profile;

/** Objects that own more than memory are released a little after the collection. */
const FINALIZERS_MS = 100;
const SAMPLE_MICROSECONDS = 200;
const session = new Session();

/** The CPU time of the main thread, which a busy machine does not lengthen. */
export interface Turn {
  readonly cpuMs: number;
}

const TURN_CHECK_MS = 1;
let turns: NodeJS.Timeout | undefined;
let longest = 0;

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function watchTurns(): void {
  let last = cpuMs();
  longest = 0;
  turns = setInterval(() => {
    const now = cpuMs();
    longest = Math.max(longest, now - last);
    last = now;
  }, TURN_CHECK_MS).unref();
}

const ANSWERS: Record<string, () => Promise<Memory | Profile | Turn | object>> = {
  async turns() {
    watchTurns();
    return {};
  },
  async turned() {
    clearInterval(turns);
    return { cpuMs: longest } satisfies Turn;
  },
  async memory() {
    globalThis.gc?.();
    await sleep(FINALIZERS_MS);
    globalThis.gc?.();
    const { heapUsed, external, rss } = process.memoryUsage();
    return { heap: heapUsed + external, rss } satisfies Memory;
  },
  async profile() {
    session.connect();
    await session.post("Profiler.enable");
    await session.post("Profiler.setSamplingInterval", { interval: SAMPLE_MICROSECONDS });
    await session.post("Profiler.start");
    return {};
  },
  async profiled() {
    const { profile } = await session.post("Profiler.stop");
    return profile satisfies Profile;
  },
};

process.on("message", async (question) => {
  const answer = ANSWERS[String(question)];
  if (answer) process.send?.(await answer());
});
process.channel?.unref(); // it must not keep a server alive that was asked to end
