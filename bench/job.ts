// The jobs of the load generator, and their results.

import type { FrontName } from "./fronts.ts";
import type { Script } from "./script.ts";

export interface Job {
  readonly port: number;
  /** The server's process: its use is read at the job's beginning and end. */
  readonly pid: number;
  /** Runs at once. Each lane is one connection, on which its runs follow each other. */
  readonly lanes: number;
  /** Runs of each lane. */
  readonly runs: number;
  /** So many runs of a lane in a row share a thread. */
  readonly turns: number;
  /** Thread ids begin with it: a prefix that was used before continues its threads. */
  readonly prefix: string;
  /** User messages that each run brings before the one with the script. */
  readonly earlier: number;
  /** The lanes begin one after the other within this time. */
  readonly spreadMs: number;
  readonly script: Script;
  /** What the server is asked over. */
  readonly front: FrontName;
}

export interface JobFigures {
  readonly runs: number;
  readonly tokens: number;
  /** Of the answers' bodies, as they went over the wire. */
  readonly bytes: number;
  readonly ms: number;
  readonly cpuMs: number;
  /** The server's main thread, for a processor. */
  readonly waitedMs: number;
  /** Medians over the runs, from the first byte of the request. */
  readonly firstEventMs: number;
  readonly firstTokenMs: number;
  readonly runMs: number;
  /** From the provider's write to our read; NaN unless the script is stamped. */
  readonly latencyMs: { readonly p50: number; readonly p99: number };
  /**
   * While all lanes were streaming: from the last one's first token to the end of the first one's last run. NaN
   * when they never were.
   */
  readonly steady: { readonly tokens: number; readonly cpuMs: number };
}

export type JobAnswer = { readonly figures: JobFigures } | { readonly error: string };
