// Ends a command and all processes that it started, with SIGTERM, then SIGKILL, and then a search for survivors.
// Finds processes by their process group and by the variable in their environment. A process that leaves the group
// and clears its environment survives.

import { setTimeout as sleep } from "node:timers/promises";
import { orAborted } from "../../lib/async.ts";
import { type BackoffOptions, backoff } from "../../lib/backoff.ts";
import { JOB } from "../process.ts";
import type { ScriptReply } from "./script.ts";

/** How long processes have to end after SIGTERM, in milliseconds. */
const GRACE_MS = 400;
/**
 * The deadline of one script, in milliseconds. The script's shell may be stopped even if another shell is
 * not.
 */
const STEP_MS = 1000;
/** The pauses between two counts of the remaining processes, after SIGTERM and after SIGKILL. */
const TERM_BACKOFF = { base: 5, cap: 40 };
const KILL_BACKOFF = { base: 5, cap: 1000 };

export interface ProcessTree {
  /** The value of the environment variable. */
  readonly id: string;
  /**
   * The command's process. Resolves once the process has started, or with undefined if this can no longer be
   * determined.
   */
  readonly leader: Promise<Leader | undefined>;
}

export interface Leader {
  /** The process id, which is also the process group id. */
  readonly pid: number;
  /** The start time in clock ticks, which is needed because process and group ids are reused. */
  readonly startedAt: string;
}

/** Runs a script in the sandbox, next to the command. */
type RunBeside = (script: string, signal: AbortSignal) => Promise<ScriptReply>;

/** Kills the processes. Repeats until no process is left or `signal` aborts. Never throws. */
export async function killTree(
  { id, leader }: ProcessTree,
  run: RunBeside,
  signal: AbortSignal,
): Promise<void> {
  // Before the command starts, no process can be found, and the command would still start later.
  const known = await orAborted(leader, signal).catch(() => undefined);
  if (known) {
    const grace = AbortSignal.any([signal, AbortSignal.timeout(GRACE_MS)]);
    await run(ask(known), grace).catch(() => {});
    await untilNone((limit) => run(look(known), limit), grace, TERM_BACKOFF);
  }
  await untilNone((limit) => run(sweep(id, known), limit), signal, KILL_BACKOFF);
}

/** Repeats a script that counts the remaining processes until the count is zero. */
async function untilNone(
  count: (limit: AbortSignal) => Promise<ScriptReply>,
  signal: AbortSignal,
  pauses: BackoffOptions,
): Promise<void> {
  for (let attempt = 0; !signal.aborted; attempt++) {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(STEP_MS)]);
    const reply = await count(limit).catch(() => undefined);
    if (reply?.fields[1] === "0") return;
    await sleep(backoff(attempt, pauses), undefined, { signal }).catch(() => {});
  }
}

/**
 * Sets `g` to the group. Leaves it empty if the id was reused, because then no member is left. Right after it
 * starts, the leader has no group yet, so `p` is set to its pid. Uses only shell builtins.
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

/** Sends SIGTERM. A stopped process receives SIGTERM only after it continues. */
const ask = (leader: Leader) => `${identify(leader)}
${send("TERM")}
${send("CONT")}`;

/** Lists the living members of the group. A zombie stays a member until its parent waits for it. */
const MEMBERS = `[ -z "$g" ] || LC_ALL=C grep -ls ") [^ZX] [0-9]* $g " /proc/[0-9]*/stat`;

const look = (leader: Leader) => `${identify(leader)}
set -- $(${MEMBERS})
r="0 $#"`;

/**
 * Kills every process that has a command's mark, and the command's group. Repeats this, because a process may fork during
 * the search.
 */
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
