// The load generator, which is a separate process. It executes the jobs that arrive over the IPC channel one after
// another, and ends when the channel closes. If a run fails, its job fails.

import { setTimeout as sleep } from "node:timers/promises";
import { FRONT } from "./fronts.ts";
import type { Job, JobAnswer, JobFigures } from "./job.ts";
import { Lane, type LaneRun, type Watch } from "./lane.ts";
import { cpuMsOf, waitedMsOf } from "./meter.ts";
import { ageMs, inputOf, lengthOf } from "./script.ts";
import { median, quantile } from "./stats.ts";

/** Work that a server does after a run's last byte belongs to the run. */
const AFTERMATH_MS = 30;

async function perform(job: Job): Promise<JobFigures> {
  const lanes = Array.from({ length: job.lanes }, () => new Lane(job.port, FRONT[job.front]));
  const latencies: number[] = [];
  const steady = steadyPart(job);
  const before = { cpuMs: cpuMsOf(job.pid), waitedMs: waitedMsOf(job.pid) };
  const began = performance.now();
  try {
    const runs = await Promise.all(
      lanes.map(async (lane, index) => {
        await sleep((job.spreadMs * index) / job.lanes);
        const results = await runsOf(lane, index, job, watching(job, latencies, steady.laneStarts()));
        steady.end();
        return results;
      }),
    );
    const ms = performance.now() - began;
    await sleep(AFTERMATH_MS);
    const used = {
      cpuMs: cpuMsOf(job.pid) - before.cpuMs,
      waitedMs: waitedMsOf(job.pid) - before.waitedMs,
    };
    return {
      ...figuresOf(runs.flat()),
      ms,
      ...used,
      latencyMs: edgesOf(latencies),
      steady: steady.figures(),
    };
  } finally {
    for (const lane of lanes) lane.close();
  }
}

async function runsOf(lane: Lane, index: number, job: Job, watch: Watch): Promise<LaneRun[]> {
  const results: LaneRun[] = [];
  const contents = contentsOf(job);
  for (let run = 0; run < job.runs; run++) {
    const threadId = `${job.prefix}-${index}-${Math.floor(run / job.turns)}`;
    const result = await lane.run(threadId, contents, watch);
    if (result.tokens !== job.script.tokens)
      throw new Error(`A run of ${job.script.tokens} tokens returned ${result.tokens}.`);
    results.push(result);
  }
  return results;
}

const contentsOf = ({ earlier, script }: Job) => [
  ...Array.from({ length: earlier }, (_, n) => `Earlier message ${n}.`),
  inputOf(script),
];

function watching({ script }: Job, latencies: number[], onEach: () => void): Watch {
  const length = lengthOf(script);
  if (!script.stamped) return { length, onToken: onEach };
  return {
    length,
    onToken(text, at) {
      latencies.push(ageMs(text, at));
      onEach();
    },
  };
}

interface Moment {
  readonly at: number;
  readonly tokens: number;
  readonly cpuMs: number;
}

/** Reads the server's CPU time once the last lane has started, and again when the first lane has finished. */
function steadyPart({ lanes, pid }: Job) {
  let live = 0;
  let tokens = 0;
  let from: Moment | undefined;
  let to: Moment | undefined;
  const now = (): Moment => ({ at: performance.now(), tokens, cpuMs: cpuMsOf(pid) });
  return {
    laneStarts() {
      let isFirst = true;
      return () => {
        tokens++;
        if (!isFirst) return;
        isFirst = false;
        if (++live === lanes) from = now();
      };
    },
    end() {
      to ??= now();
    },
    figures() {
      if (!from || !to || to.at < from.at) return { tokens: Number.NaN, cpuMs: Number.NaN };
      return { tokens: to.tokens - from.tokens, cpuMs: to.cpuMs - from.cpuMs };
    },
  };
}

function figuresOf(runs: readonly LaneRun[]) {
  const sum = (of: (run: LaneRun) => number) => runs.reduce((total, run) => total + of(run), 0);
  return {
    runs: runs.length,
    tokens: sum((run) => run.tokens),
    bytes: sum((run) => run.bytes),
    firstEventMs: median(runs.map((run) => run.firstEventMs)),
    firstTokenMs: median(runs.map((run) => run.firstTokenMs)),
    runMs: median(runs.map((run) => run.ms)),
  };
}

const edgesOf = (latencies: readonly number[]) => ({
  p50: quantile(latencies, 0.5),
  p99: quantile(latencies, 0.99),
});

process.on("message", async (job: Job) => {
  const answer: JobAnswer = await perform(job).then(
    (figures) => ({ figures }),
    (error: unknown) => ({ error: error instanceof Error ? error.message : String(error) }),
  );
  process.send?.(answer);
});
process.on("disconnect", () => process.exit());
