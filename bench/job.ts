// The jobs of the load generator and their results.

import type { FrontName } from "./fronts.ts";
import type { Script } from "./script.ts";

export interface Job {
  readonly port: number;
  /** The server's process. Its CPU time is read at the start and the end of the job. */
  readonly pid: number;
  /** The number of concurrent lanes. Each lane is one connection and sends its runs one after another. */
  readonly lanes: number;
  /** The number of runs per lane. */
  readonly runs: number;
  /** The number of consecutive runs in a lane that share a thread. */
  readonly turns: number;
  /** The prefix of the thread ids. A prefix that was used before continues its threads. */
  readonly prefix: string;
  /** The number of user messages that each run sends before the message with the script. */
  readonly earlier: number;
  /** The lanes start one after another within this time. */
  readonly spreadMs: number;
  readonly script: Script;
  /** The API or wire that the requests use. */
  readonly front: FrontName;
}

export interface JobFigures {
  readonly runs: number;
  readonly tokens: number;
  /** The size of the response bodies as transferred. */
  readonly bytes: number;
  readonly ms: number;
  readonly cpuMs: number;
  /** How long the server's main thread waited for a processor. */
  readonly waitedMs: number;
  /** Medians over the runs, measured from the first byte of the request. */
  readonly firstEventMs: number;
  readonly firstTokenMs: number;
  readonly runMs: number;
  /** The time from the provider's write to our read. NaN unless the script is stamped. */
  readonly latencyMs: { readonly p50: number; readonly p99: number };
  /**
   * Measured while all lanes were streaming: from the first token of the last lane to the end of the first lane's last
   * run. NaN if they never streamed all at once.
   */
  readonly steady: { readonly tokens: number; readonly cpuMs: number };
}

export type JobAnswer = { readonly figures: JobFigures } | { readonly error: string };
