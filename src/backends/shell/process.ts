// One command that runs in a lane: its script, its output, what becomes of it, and how it is ended.
//
// The command runs in a session of its own and writes into a pipe of its own. When it ends, its status follows its
// output through that pipe, so nothing that it wrote comes later. What it leaves in the background may hold the pipe
// on, but never writes into what the lane does next.

import { setTimeout as sleep } from "node:timers/promises";
import type { CommandEnd, ExecResult } from "../../core/backend.ts";
import { randomId } from "../../lib/random-id.ts";
import { newTranscript } from "../transcript.ts";
import { JOB, type Leader, sweep, type Tree } from "./kill-tree.ts";
import { printSentinel, quote, SandboxLostError } from "./script.ts";
import { linesOf, type ShellSession } from "./session.ts";

/** How long ending it may hold up who waits for it. */
const ENDING_MS = 3500;
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
/** What is left in the background may hold the pipe: so long it is waited for, and so much is read of it. */
const DRAIN_MS = 100;
const DRAIN_BYTES = 1024 * 1024;
/** How much later than the status the shell's own messages may come, for they come on another way. */
const MESSAGES_MS = 1000;
/** How much later than the end of a command it may become known that the memory was used up. */
const OOM_MS = 250;
/** Between two reads of what is printed in the background. */
const SIP_MS = 10;

export interface ShellProcessOptions {
  readonly command: string;
  /** Where it starts. */
  readonly workdir: string;
  /** Ends all that it has started; resolves when nothing is left. */
  readonly killTree: (tree: Tree) => Promise<void>;
}

/** `done`: the lane is free. `held`: it is through, but its output is held. `cut`: its output is lost. */
type Outcome = "done" | "held" | "cut" | "lost";

export class ShellProcess implements Tree {
  readonly id = randomId();
  readonly transcript = newTranscript();
  readonly session: ShellSession;
  /** Why it was ended by us. */
  ended: CommandEnd | undefined;
  readonly #killTree: (tree: Tree) => Promise<void>;
  readonly #leader = Promise.withResolvers<Leader | undefined>();
  readonly #settled = Promise.withResolvers<void>();
  #outcome: Outcome | undefined;
  #status: number | undefined;
  #patience: NodeJS.Timeout | undefined;
  #bytes = 0;
  #bytesInTime = 0;
  #isAnswered = false;
  #isPipeClosed = false;
  /** Whether the shell itself had something to say of how the command ended, and whether all of that has come. */
  #hasMessage = false;
  #isReported = false;
  #isOutOfMemory = false;
  #ending: Promise<void> | undefined;
  #isEnded = false;
  #wake = () => {};

  /** Starts it. */
  constructor(session: ShellSession, { command, workdir, killTree }: ShellProcessOptions) {
    this.session = session;
    this.#killTree = killTree;
    const mark = randomId();
    const report = linesOf((line) => this.#onReport(line, mark));
    session.begin({
      mark,
      script: scriptOf({ mark, id: this.id, command, workdir }),
      onOutput: (bytes) => this.#onOutput(bytes),
      onErrorOutput: report,
      onMark: (words) => this.#onMark(words),
      onLost: () => this.#settle("lost"),
    });
  }

  get leader(): Promise<Leader | undefined> {
    return this.#leader.promise;
  }
  get outcome(): Outcome | undefined {
    return this.#outcome;
  }
  /** True once the command is through; when it was ended by us, with all that it had started. */
  get isOver(): boolean {
    return this.#ending ? this.#isEnded : this.#outcome !== undefined;
  }

  /** Resolves at the next change of what is above or below, or after `ms`. */
  async change(ms?: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = ms === undefined ? undefined : setTimeout(resolve, ms);
    this.#wake = resolve;
    await promise;
    clearTimeout(timer);
  }

  /** Stops and goes on with reading: who prints meanwhile waits. Not while it is being ended, for that must be seen. */
  hold(): void {
    if (!this.ended) this.session.pause();
  }
  goOn(): void {
    this.session.resume();
  }

  /** Ends the command and everything it started. Without effect when the command is through. */
  end(reason: CommandEnd): Promise<void> {
    if (this.#ending) return this.#ending;
    if (this.#status !== undefined || this.#outcome) return Promise.resolve();
    this.ended = reason;
    this.goOn();
    this.#ending = this.#end();
    return this.#ending;
  }

  /** The memory of the sandbox was used up. */
  noteOom(): void {
    this.#isOutOfMemory = true;
    this.#wake();
  }

  /** What became of it, once it is over. */
  async result(): Promise<ExecResult> {
    const exit = this.#exit();
    const isKilled = isKill(exit);
    if (isKilled && !this.ended && !this.#isOutOfMemory) await this.change(OOM_MS);
    const { text: output, omitted } = this.transcript.read();
    const ended = this.ended ?? this.#loss() ?? (isKilled && this.#isOutOfMemory ? "oom" : undefined);
    return { output, omitted, ...exit, ...(ended ? { ended } : {}) };
  }

  #exit(): Exit {
    return this.#status === undefined ? { exitCode: null } : exitOf(this.#status, this.#hasMessage);
  }

  #loss(): CommandEnd | undefined {
    if (this.#status !== undefined) return undefined;
    return this.#outcome === "lost" ? "sandbox-lost" : "output-lost";
  }

  async #end(): Promise<void> {
    const isOver = new AbortController();
    const impatience = sleep(ENDING_MS, undefined, { signal: isOver.signal }).catch(() => {});
    await Promise.race([Promise.all([this.#killTree(this), this.#settled.promise]), impatience]);
    isOver.abort();
    if (!this.#outcome) this.session.close(new SandboxLostError("a command does not end"));
    this.#isEnded = true;
    this.#wake();
  }

  #onOutput(bytes: Buffer): void {
    if (this.#outcome) this.#sip();
    if (this.#outcome || this.ended === "output-limit") return;
    this.#bytes += bytes.length;
    this.transcript.take(bytes);
    if (this.#status === undefined) this.#bytesInTime = this.#bytes;
    if (this.#bytes > MAX_OUTPUT_BYTES) void this.end("output-limit");
    if (this.#bytes - this.#bytesInTime > DRAIN_BYTES) this.#settle("held");
    this.#wake();
  }

  /** Reads on and forgets, so that who prints is not held up, but too slowly to keep the server busy. */
  #sip(): void {
    this.session.pause();
    setTimeout(() => this.session.resume(), SIP_MS).unref();
  }

  /** First the command's status, if the pipe is whole; then that nobody holds the pipe any more. */
  #onMark(words: string): void {
    if (!this.#isAnswered) this.session.write(RELEASE_INPUT).catch(() => {});
    this.#isAnswered = true;
    const [kind, status] = words.split(" ");
    if (kind === "ended") {
      this.#status = Number(status);
      this.#patience = setTimeout(() => this.#onImpatience(), DRAIN_MS);
      return;
    }
    this.#isPipeClosed = true;
    this.#review();
  }

  #onReport(line: string, mark: string): void {
    const [word, of, pid, startedAt] = line.split(" ");
    if (of === mark && word === "started")
      this.#leader.resolve({ pid: Number(pid), startedAt: `${Number(startedAt)}` });
    else if (of === mark) this.#isReported = true;
    else if (line !== "") this.#hasMessage = true;
    this.#review();
  }

  #onImpatience(): void {
    const settle = () => this.#settle("held");
    // A busy server may not have come to read what has come long ago: it does before the immediate.
    if (this.#isReported) setImmediate(settle);
    else this.#patience = setTimeout(settle, MESSAGES_MS);
  }

  #review(): void {
    if (!this.#isPipeClosed) return;
    if (this.#status === undefined) this.#settle("cut");
    else if (this.#isReported || this.#outcome) this.#settle("done");
  }

  #settle(outcome: Outcome): void {
    if (this.#isPipeClosed) this.session.end();
    if (this.#outcome) return;
    clearTimeout(this.#patience);
    this.#outcome = outcome;
    this.#leader.resolve(undefined);
    this.#settled.resolve();
    this.#wake();
  }
}

// The script that runs a command in a lane, and what it tells of the command.

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
    ${printSentinel("ended $?")}
    echo "reported $N" >&2
  } </dev/null 5<&- | cat 5<&-
  ${printSentinel("closed")}
  wait $w
  exec 5<&-
}
`;
/** What is to be sent with the first mark. */
export const RELEASE_INPUT = Buffer.from("\n");

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
