// Loaded into a server before its own program: answers the parent process what the server itself has no way to
// tell. `memory`: what it holds after a full collection. `profile`: nothing, but from here on its CPU time is
// recorded; `profiled` ends that, with the record.

import type { Profiler } from "node:inspector";
import { Session } from "node:inspector/promises";
import { setTimeout as sleep } from "node:timers/promises";

/** In bytes. */
export interface Memory {
  readonly heap: number;
  readonly rss: number;
}

export type Profile = Profiler.Profile;

/** What a collection has found is freed a little later, where it is more than memory. */
const FINALIZERS_MS = 100;
const SAMPLE_MICROSECONDS = 200;
const session = new Session();

const ANSWERS: Record<string, () => Promise<Memory | Profile | object>> = {
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
