// One command in a shell session: its script, its report, and the way it is ended.
//
// The command has its own session and writes into its own pipe. Its exit status follows its output through that pipe,
// so it comes after all output. A background process may keep the pipe open, but cannot write into the session's next
// script.

import { atMost } from "../../lib/async.ts";
import { randomId } from "../../lib/random-id.ts";
import { CommandProcess, type Exit, JOB, type ProcessOutcome } from "../process.ts";
import { type Leader, type ProcessTree, sweep } from "./kill-tree.ts";
import { printSentinel, quote, SandboxLostError } from "./script.ts";
import { linesOf, type ShellSession } from "./session.ts";

/** The maximum time that ending a command may delay its caller, in milliseconds. */
const ENDING_MS = 3500;
/** How long after a command's end the engine may report that memory ran out, in milliseconds. */
const OOM_MS = 250;

export interface ShellProcessOptions {
  readonly command: string;
  /** The working directory of the command. */
  readonly workdir: string;
  /** Environment variables to add to those of the session. */
  readonly environment: Readonly<Record<string, string>> | undefined;
  /** Ends all processes of the command. Resolves when no processes are left. */
  readonly killTree: (tree: ProcessTree) => Promise<void>;
}

export class ShellProcess extends CommandProcess implements ProcessTree {
  readonly id = randomId();
  readonly session: ShellSession;
  readonly #killTree: (tree: ProcessTree) => Promise<void>;
  readonly #leader = Promise.withResolvers<Leader | undefined>();
  #status: number | undefined;
  #isReleased = false;
  #isPipeClosed = false;
  /** True if the session's shell printed a message about how the command ended. */
  #hasMessage = false;
  #isReported = false;
  #isOutOfMemory = false;

  /** Starts the command. */
  constructor(session: ShellSession, { command, workdir, environment = {}, killTree }: ShellProcessOptions) {
    super();
    this.session = session;
    this.#killTree = killTree;
    const mark = randomId();
    session.begin({
      mark,
      script: scriptOf({ mark, id: this.id, command, workdir, environment }),
      onOutput: (bytes) => this.onOutput(bytes),
      onErrorOutput: linesOf((line) => this.#onReport(line, mark)),
      onMark: (words) => this.#onMark(words),
      onLost: () => this.settle("lost"),
    });
  }

  get leader(): Promise<Leader | undefined> {
    return this.#leader.promise;
  }

  /** Records that the sandbox ran out of memory. */
  noteOom(): void {
    this.#isOutOfMemory = true;
    this.wake();
  }

  protected override get isReported(): boolean {
    return this.#isReported;
  }

  protected pause(): void {
    this.session.pause();
  }
  protected resume(): void {
    this.session.resume();
  }
  protected async kill(): Promise<void> {
    await atMost(ENDING_MS, Promise.all([this.#killTree(this), this.settled]));
    if (!this.outcome) this.session.close(new SandboxLostError("a command does not end"));
  }

  protected async exit(): Promise<Exit> {
    const status = this.#status;
    if (status === undefined)
      return { exitCode: null, ended: this.outcome === "lost" ? "sandbox-lost" : "output-lost" };
    const exit = exitOf(status, this.#hasMessage);
    if (!isKill(exit) || this.ended) return exit;
    if (!this.#isOutOfMemory) await this.change(OOM_MS);
    return this.#isOutOfMemory ? { ...exit, ended: "oom" } : exit;
  }

  /**
   * Handles a sentinel. If the pipe is intact, the exit status comes first, followed by a sentinel once no process has the pipe open.
   */
  #onMark(words: string): void {
    if (!this.#isReleased) this.session.write(RELEASE_INPUT).catch(() => {});
    this.#isReleased = true;
    const [kind, status] = words.split(" ");
    if (kind === "ended") {
      this.#status = Number(status);
      this.onExit();
      return;
    }
    this.#isPipeClosed = true;
    this.#settleAtEnd();
  }

  #onReport(line: string, mark: string): void {
    const [word, of, pid, startedAt] = line.split(" ");
    if (of === mark && word === "started")
      this.#leader.resolve({ pid: Number(pid), startedAt: `${Number(startedAt)}` });
    else if (of === mark) this.#isReported = true;
    else if (line !== "") this.#hasMessage = true;
    this.#settleAtEnd();
  }

  #settleAtEnd(): void {
    if (!this.#isPipeClosed) return;
    if (this.#status === undefined) this.settle("cut");
    else if (this.#isReported || this.outcome) this.settle("done");
  }

  protected override settle(outcome: ProcessOutcome): void {
    if (this.#isPipeClosed) this.session.end();
    this.#leader.resolve(undefined);
    super.settle(outcome);
  }
}

interface CommandScript {
  /** The first word of the command's sentinels. */
  readonly mark: string;
  readonly id: string;
  readonly command: string;
  readonly workdir: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** Creates the session's home directory, which programs expect. Its `.gitignore` hides it from surrounding repositories. */
export const MAKE_HOME = `[ -d "\${HOME:-/}" ] || { mkdir -p -- "$HOME" && echo '*' >"$HOME/.gitignore"; } 2>/dev/null`;

const exported = (environment: Readonly<Record<string, string>>) =>
  Object.entries(environment)
    .map(([name, value]) => ` ${name}=${quote(value)}`)
    .join("");

/**
 * The command is a single word of the script, with its own session, output and environment. The server adds only
 * the command's id to that environment.
 *
 * The script prints two sentinels: `ended` with the status, through the pipe and therefore after all output, and
 * `closed`, once no process has the pipe open. It writes three things to the session's standard error:
 *
 * - `started`, with the pid and start time of the process that becomes the command,
 * - the shell's own message about the command's end, and
 * - `reported`.
 *
 * Next to the command, a second process waits for one line on the session's input, which is sent with the first
 * sentinel. If the input ends instead, for example after a server crash, that process ends the command and all
 * processes that it started. The script is one compound command, so the shell has read all of it before that line
 * arrives.
 */
const scriptOf = ({
  mark,
  id,
  command,
  workdir,
  environment,
}: CommandScript) => `N=${mark} c=${quote(command)}
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
      ${MAKE_HOME}
      cd -- ${quote(workdir)} 2>&1 && unset OLDPWD && export${exported(environment)} ${JOB}=${id} && exec setsid /bin/sh -c "$1" 2>&1
    )
    ${printSentinel("ended $?")}
    echo "reported $N" >&2
  } </dev/null 5<&- | cat 5<&-
  ${printSentinel("closed")}
  wait $w
  exec 5<&-
}
`;
/** The line that is sent with the first sentinel. */
const RELEASE_INPUT = Buffer.from("\n");

/** A shell reports death by a signal as this number plus the signal's number. */
const KILLED = 128;
/** The Linux signals, starting at number 1. */
const SIGNALS =
  "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS".split(
    " ",
  );
const SIGKILL = SIGNALS.indexOf("KILL") + 1;

/**
 * A shell prints a message about a command killed by a signal, but not about one that exited with the same status. It
 * never prints one for SIGINT and SIGPIPE, so these are reported as the status alone.
 */
function exitOf(status: number, hasMessage: boolean): Exit {
  const number = status - KILLED;
  if (!hasMessage || number <= 0) return { exitCode: status };
  return { exitCode: null, signal: `SIG${SIGNALS[number - 1] ?? number}` };
}

/** True if the command, or according to its status a process in it, was killed with SIGKILL. */
const isKill = ({ exitCode, signal }: Exit) => signal === "SIGKILL" || exitCode === KILLED + SIGKILL;
