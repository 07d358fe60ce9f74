// Ending a command with everything it has started: first it is asked, then it is killed, then what is left is
// looked for. It is found by its process group, and outside of that by the variable that the command had in its
// environment. What leaves the group and wipes its environment stays.

import { setTimeout as sleep } from "node:timers/promises";
import { orAborted } from "../../lib/abortable.ts";
import type { Reply } from "./script.ts";

/** The variable that names the job. */
export const JOB = "SKEIN_JOB";

/** How long those who are asked to end may take. */
const GRACE_MS = 400;
/** For one step: a shell may have been stopped, and another one may not. */
const STEP_MS = 1000;
/** Between two looks at what is left: the first, and the longest while it is asked and while it is killed. */
const FIRST_WAIT_MS = 5;
const ASKING_WAIT_MS = 40;
const KILLING_WAIT_MS = 1000;

export interface Tree {
  /** The value of the variable. */
  readonly id: string;
  /** The command's process. Resolves when it has started, or with nothing when that will not be known any more. */
  readonly leader: Promise<Leader | undefined>;
}

export interface Leader {
  /** The number of the process, and of its group. */
  readonly pid: number;
  /** When it started, in the system's own count: numbers are used again, even those of groups. */
  readonly startedAt: string;
}

/** Runs a script in the sandbox beside the command. */
export type RunBeside = (script: string, signal: AbortSignal) => Promise<Reply>;

/** Resolves when nothing is left, or when `signal` aborts: until then it tries again. Never throws. */
export async function killTree({ id, leader }: Tree, run: RunBeside, signal: AbortSignal): Promise<void> {
  // Before it has started there is nothing to be found, and it would start after all.
  const known = await orAborted(leader, signal).catch(() => undefined);
  if (known) {
    const grace = AbortSignal.any([signal, AbortSignal.timeout(GRACE_MS)]);
    await run(ask(known), grace).catch(() => {});
    await untilNone((limit) => run(look(known), limit), grace, ASKING_WAIT_MS);
  }
  await untilNone((limit) => run(sweep(id, known), limit), signal, KILLING_WAIT_MS);
}

/** Repeats a script that counts what is left, more and more slowly. */
async function untilNone(
  count: (limit: AbortSignal) => Promise<Reply>,
  signal: AbortSignal,
  longestWaitMs: number,
): Promise<void> {
  for (let wait = FIRST_WAIT_MS; !signal.aborted; wait = Math.min(wait * 2, longestWaitMs)) {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(STEP_MS)]);
    const reply = await count(limit).catch(() => undefined);
    if (reply?.fields[1] === "0") return;
    await sleep(wait, undefined, { signal }).catch(() => {});
  }
}

/**
 * Sets `g` to the group, unless its number is another's by now: then there is none of its members left. Right after
 * its start the leader has no group yet, and `p` is set to it. Nothing but the shell itself is needed.
 */
const identify = ({ pid, startedAt }: Leader) => `g= p= s=
read -r s </proc/${pid}/stat
set -- \${s##*) }
case \${20} in
'') g=${pid} ;;
${startedAt}) g=${pid} p=${pid} ;;
esac`;

const send = (signal: string) =>
  `[ -z "$g" ] || kill -s ${signal} -- "-$g" || [ -z "$p" ] || kill -s ${signal} "$p"`;

/** One that was stopped hears it only when it goes on. */
const ask = (leader: Leader) => `${identify(leader)}
${send("TERM")}
${send("CONT")}`;

/** Lists the living members of the group; one that has ended is a member until its parent asks for it. */
const MEMBERS = `[ -z "$g" ] || LC_ALL=C grep -ls ") [^ZX] [0-9]* $g " /proc/[0-9]*/stat`;

const look = (leader: Leader) => `${identify(leader)}
set -- $(${MEMBERS})
r="0 $#"`;

/** Kills what carries a job's mark, and its group. A process that forks while it is looked for may need several looks. */
export const sweep = (id: string, leader?: Leader) => `for round in 1 2 3; do
${leader ? identify(leader) : "g= p="}
${send("KILL")}
set -- $(LC_ALL=C grep -lsxzF '${JOB}=${id}' /proc/[0-9]*/environ; ${MEMBERS})
for file; do
file=\${file#/proc/}
kill -s KILL "\${file%%/*}"
done
done
r="0 $#"`;
