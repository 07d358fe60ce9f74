// The tools for a scenario: both servers, warmed up, the load generator, and the comparison in pairs.

import { once } from "node:events";
import type { Figure } from "./budgets.ts";
import type { Child, Children, Server } from "./children.ts";
import type { Job, JobAnswer, JobFigures } from "./job.ts";
import { PROBED, startProfile } from "./probing.ts";
import { script } from "./script.ts";
import type { Store, Target } from "./targets.ts";

const JOB_MS = 180_000;

/** Enough of each kind of work for the compiler to finish optimizing it. */
const WARM_UP: readonly Partial<Job>[] = [
  { runs: 6 },
  { runs: 6, script: script({ batch: 8 }) },
  { runs: 2, script: script({ tokens: 5, calls: 10 }) },
  { runs: 4 },
];

export interface Scenario {
  readonly name: string;
  /** A sentence that describes the measurement. */
  readonly about: string;
  run(rig: Rig): Promise<Row[]>;
}

/** A line of the table. `ratio` has a value for each round. */
export interface Row {
  readonly figure: string;
  readonly bare?: readonly number[];
  readonly skein: readonly number[];
  readonly ratio?: readonly number[];
  /** Selects the row's budget and its recorded figure. */
  readonly is?: Figure;
}

export interface Pair<K extends string> {
  readonly bare: Record<K, number>;
  readonly skein: Record<K, number>;
}

export interface Rig {
  readonly store: Store;
  readonly rounds: number;
  readonly targets: { readonly bare: Target; readonly skein: Target };
  readonly children: Children;
  /** Returns one server of each kind, started and warmed up once. */
  warm(): Promise<{ readonly bare: Server; readonly skein: Server }>;
  /** Runs the job against `server`. Throws if a run fails. */
  load(server: Server, job: Partial<Job>): Promise<JobFigures>;
  /**
   * Measures both warm servers one right after the other, once per round. The order alternates. A figure that hardly
   * varies needs few `rounds`, even if more were requested.
   */
  pairs<K extends string>(
    measure: (server: Server) => Promise<Record<K, number>>,
    rounds?: number,
  ): Promise<Pair<K>[]>;
}

export interface RigOptions {
  readonly children: Children;
  readonly loader: Child;
  readonly targets: Rig["targets"];
  readonly store: Store;
  readonly rounds: number;
  /** Once this time has passed since a scenario's first pair, no further pair is started. */
  readonly enoughMs?: number;
  /** Records the servers' CPU time after the warm-up. */
  readonly profiled: boolean;
}

export function createRig(options: RigOptions): Rig {
  const { children, loader, targets, store, rounds, profiled, enoughMs = Number.POSITIVE_INFINITY } = options;
  const lost = endOf(loader);
  let jobs = 0;
  let servers: ReturnType<Rig["warm"]> | undefined;

  const load: Rig["load"] = (server, parts) => {
    const { port, pid } = server;
    const job = {
      lanes: 1,
      runs: 1,
      turns: 1,
      earlier: 0,
      spreadMs: 0,
      prefix: `bench-${++jobs}`,
      script: script({}),
      front: "native" as const,
      ...parts,
    };
    return perform(loader, { ...job, port, pid }, lost).catch((error: Error) => {
      throw new Error(`${error.message}\n${server.complaint()}`);
    });
  };

  const warmUp = async (target: Target): Promise<Server> => {
    const server = await target.start(profiled ? PROBED : []);
    for (const parts of WARM_UP) await load(server, { lanes: 64, ...parts });
    if (profiled) await startProfile(server);
    return server;
  };
  const bothWarm = async () => ({ bare: await warmUp(targets.bare), skein: await warmUp(targets.skein) });
  const warm: Rig["warm"] = () => {
    servers ??= bothWarm();
    return servers;
  };

  return {
    ...{ store, rounds, targets, children, load, warm },
    async pairs(measure, times = rounds) {
      const { bare, skein } = await warm();
      const pairs = [];
      const end = performance.now() + enoughMs;
      for (let round = 0; round < times && performance.now() < end; round++) {
        const [first, second] = round % 2 === 0 ? [bare, skein] : [skein, bare];
        const [one, other] = [await measure(first), await measure(second)];
        pairs.push(first === bare ? { bare: one, skein: other } : { bare: other, skein: one });
      }
      return pairs;
    },
  };
}

async function perform({ process }: Child, job: Job, lost: Promise<never>): Promise<JobFigures> {
  const answered = once(process, "message", { signal: AbortSignal.timeout(JOB_MS) }).catch(() => {
    throw new Error(`The load was not done within ${JOB_MS / 1000} s.`);
  });
  process.send(job);
  // load.ts answers each job with one message.
  const [answer] = (await Promise.race([answered, lost])) as [JobAnswer];
  if ("error" in answer) throw new Error(answer.error);
  return answer.figures;
}

/** Rejects when the process ends. */
function endOf({ process, complaint }: Child): Promise<never> {
  const lost = new Promise<never>((_, reject) => {
    process.once("exit", () => reject(new Error(`The load generator ended. ${complaint()}`)));
  });
  lost.catch(() => {}); // not awaited between jobs
  return lost;
}

/** Returns the line of one measure: the medians of both servers, and the median of the pairs' ratios. */
export function row<K extends string>(figure: string, pairs: readonly Pair<K>[], key: K, is?: Figure): Row {
  return {
    figure,
    bare: pairs.map((pair) => pair.bare[key]),
    skein: pairs.map((pair) => pair.skein[key]),
    ratio: pairs.map((pair) => pair.skein[key] / pair.bare[key]),
    ...(is ? { is } : {}),
  };
}
