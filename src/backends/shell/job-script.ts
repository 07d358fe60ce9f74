// The script that runs a command in a lane, and what it tells of the command.

import type { ExecResult } from "../../core/backend.ts";
import { JOB, sweep } from "./ending.ts";
import { printMark } from "./marks.ts";
import { quote } from "./runner.ts";

export interface JobScript {
  /** The word that all its marks begin with. */
  readonly mark: string;
  readonly id: string;
  readonly command: string;
  readonly workdir: string;
}

/**
 * The command is one word in it, and gets a session, an output and an environment in which nothing is ours but its
 * id. Two marks come: `ended` with the status, through the pipe and so behind all output; then `closed`, when nobody
 * holds the pipe any more. On the lane's standard error come `started` with the number of the process that becomes
 * the command and the time of its start, then what the lane's shell has to say of how it ended, then `reported`.
 *
 * Beside the command somebody waits for a line on the lane's input, which is to be sent with the first mark. When the
 * input ends instead, nobody waits for the command any more, as when the server has died: then it is ended with
 * everything it has started. All of it is one command of the shell's: it is read before that line could be.
 */
export const scriptOf = ({ mark, id, command, workdir }: JobScript) => `N=${mark} c=${quote(command)}
{
  exec 5<&0
  { read -r c || { ${sweep(id)}
  }; } <&5 5<&- >/dev/null 2>&1 &
  w=$!
  {
    (
      read -r pid rest </proc/self/stat
      set -- \${rest##*) }
      echo "started $N $pid \${20}" >&2
      set -- "$c"
      unset N c w r pid rest
      cd -- ${quote(workdir)} 2>&1 && unset OLDPWD && export ${JOB}=${id} && exec setsid /bin/sh -c "$1" 2>&1
    )
    ${printMark("ended $?")}
    echo "reported $N" >&2
  } </dev/null 5<&- | cat 5<&-
  ${printMark("closed")}
  wait $w
  exec 5<&-
}
`;
/** What is to be sent with the first mark. */
export const FAREWELL = Buffer.from("\n");

/** A shell's status for what was killed by a signal is this and the signal's number. */
const KILLED = 128;
/** By their numbers on Linux, from 1. */
const SIGNALS =
  "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS".split(
    " ",
  );
const SIGKILL = SIGNALS.indexOf("KILL") + 1;

export type Exit = Pick<ExecResult, "exitCode" | "signal">;

/**
 * A shell has something to say of what was killed by a signal, and nothing of what ended with the same status by
 * itself. Of SIGINT and SIGPIPE it does not speak: they are told by the status alone.
 */
export function exitOf(status: number, hasMessage: boolean): Exit {
  const number = status - KILLED;
  if (!hasMessage || number <= 0) return { exitCode: status };
  return { exitCode: null, signal: `SIG${SIGNALS[number - 1] ?? number}` };
}

/** Whether it was killed with SIGKILL, or says that something in it was. */
export const isKill = ({ exitCode, signal }: Exit) => signal === "SIGKILL" || exitCode === KILLED + SIGKILL;
