// Reading a command's output to its end.

import { setImmediate } from "node:timers/promises";
import type { ExecOutput, ExecResult } from "../../core/backend.ts";
import type { Stream } from "../../core/stream.ts";
import { newTranscript } from "../transcript.ts";
import type { Job } from "./job.ts";

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
/** What is left in the background may hold the pipe: so long it is waited for, and so much is read of it. */
const DRAIN_MS = 100;
const DRAIN_BYTES = 1024 * 1024;
/** Reads that empty a full pipe. */
const LAST_READS = 32;

/**
 * Reads only as fast as the consumer takes: a command that writes faster waits. Past the limit it is ended.
 * Returns when the command is through; its output may still be held by what it left in the background.
 */
export async function* follow(job: Job): Stream<ExecResult, ExecOutput> {
  const transcript = newTranscript();
  let bytes = 0;
  let patience = DRAIN_MS;
  let bytesInTime = 0;

  const read = (): boolean => {
    // `read` without a size returns a Buffer or null: no encoding is set.
    const chunk: Buffer | null = job.ended === "output-limit" ? null : job.output.read();
    if (!chunk) return false;
    bytes += chunk.length;
    transcript.take(chunk);
    if (bytes > MAX_OUTPUT_BYTES) void job.end("output-limit");
    return true;
  };

  for (;;) {
    const isMore = read();
    const text = transcript.due();
    if (text !== "") yield { text };
    if (!job.isOver) bytesInTime = bytes;
    if (bytes - bytesInTime > DRAIN_BYTES) break;
    if (isMore || text !== "") continue;
    if (!job.isOver) {
      await job.change(transcript.dueIn());
      continue;
    }
    if (job.isSilent || job.ended === "output-limit" || patience <= 0) break;
    const since = performance.now();
    await job.change(patience);
    patience -= performance.now() - since;
  }
  // What the command wrote is in the pipe by now, but a busy server may not have come to read it.
  for (let count = 0; count < LAST_READS && !job.isSilent; count++) {
    await setImmediate();
    if (!read()) break;
  }
  const rest = transcript.end();
  if (rest !== "") yield { text: rest };
  return resultOf(job, transcript.read());
}

function resultOf({ exit, ended }: Job, { text, omitted }: { text: string; omitted: number }): ExecResult {
  return {
    output: text,
    omitted,
    exitCode: exit?.code ?? null,
    ...(exit?.signal ? { signal: exit.signal } : {}),
    ...(ended ? { ended } : {}),
  };
}
