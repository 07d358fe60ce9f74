// A script and how a shell session runs it: how it is wrapped, gets its input, and how long it may take.
//
// A shell reads its script and the script's input from one stream, and reads ahead. So the input is sent after the shell
// reports that it has read the whole script, and nothing follows until it reports the script's end. Input that the script
// left unread is then discarded up to a line that only this operation knows.

import { AppError } from "../../agent/core/errors.ts";
import { randomId } from "../../lib/random-id.ts";

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
const DEADLINE_MS = 20_000;
const SILENCE_MS = 1500;
const PIECE_BYTES = 64 * 1024;

/** A piece of shell script. It contains user text only as `quote`d words. */
export interface ShellScript {
  /**
   * Runs in a session that has the functions of the prelude, with `$N` = the operation's mark, standard error
   * discarded and, without `input`, nothing to read. Sets `r`: words that come back as `fields`, first a status,
   * 0 = success. It may change the working directory and any variable.
   */
  readonly script: string;
  /** The bytes on standard input, for one command that reads exactly this many (`head -c`). */
  readonly input?: Uint8Array;
  /** The longest output. More fails the script with `payload_too_large`. */
  readonly maxBytes?: number;
}

export interface Reply {
  /** `r`, split at spaces. */
  readonly fields: readonly string[];
  /** Its standard output. */
  readonly output: Buffer;
  /** The operation's mark, a random word that no file contains by chance. */
  readonly mark: string;
}

/** The shell, or the sandbox with it, ended during an operation: its effect is unknown. */
export class SandboxLostError extends Error {
  override name = "SandboxLostError";
}

export interface ScriptRunner {
  /**
   * Runs a script that may safely run twice, and repeats it after a loss. Throws the signal's reason,
   * `payload_too_large`, or `backend_failed`/`unavailable` when the sandbox is unavailable.
   */
  run(script: ShellScript, signal: AbortSignal): Promise<Reply>;
  /** Runs a script once. Also throws `SandboxLostError`. */
  runOnce(script: ShellScript, signal: AbortSignal): Promise<Reply>;
}

/** What a session runs. It receives all output until it calls `end`. */
export interface Operation {
  /** The word that begins its sentinels. */
  readonly mark: string;
  readonly script: string;
  /** Output between the sentinels; `bytes` are valid until the call returns. */
  onOutput(bytes: Buffer): void;
  onMark(words: string): void;
  onErrorOutput?(bytes: Buffer): void;
  /** The session was closed before the operation was over. No call follows. */
  onLost(reason: Error): void;
}

/** A shell that runs one operation at a time. */
export interface OperationSession {
  /** Only while it is idle. */
  begin(operation: Operation): void;
  /** The operation is over: the shell prints nothing more for it. */
  end(): void;
  /** Writes to the shell's standard input. Resolves when it takes more, rejects once the session is closed. */
  write(bytes: Uint8Array): Promise<void>;
  close(reason: Error): void;
}

export interface ScriptTimeouts {
  readonly signal: AbortSignal;
  /** Called when the shell has not answered for `SILENCE_MS`. */
  readonly onSilence?: () => void;
}

/** Quotes text as one word of a shell. */
export const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** A shell command that prints a sentinel; `words` goes between double quotes. */
export const printSentinel = (words: string) => `printf '\\036%s %s\\n' "$N" "${words}"`;

/**
 * Throws the signal's reason, `payload_too_large` or `SandboxLostError`. An abort rejects at once, and the session is free
 * when the script has ended. A script that takes or prints too much closes its session.
 */
export async function runScript(
  session: OperationSession,
  { script, input, maxBytes = MAX_OUTPUT_BYTES }: ShellScript,
  { signal, onSilence }: ScriptTimeouts,
): Promise<Reply> {
  signal.throwIfAborted();
  const mark = randomId();
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const output = gather(maxBytes);
  const answers = input ? feed(session, input, mark) : [];

  const silence = onSilence && setTimeout(onSilence, SILENCE_MS);
  const deadline = setTimeout(() => session.close(tooSlow()), DEADLINE_MS);
  const onAbort = () => {
    output.drop();
    reject(signal.reason);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  const settle = () => {
    clearTimeout(silence);
    clearTimeout(deadline);
    signal.removeEventListener("abort", onAbort);
  };

  session.begin({
    mark,
    script: `N=${mark} r=0\n${input ? withInput(script) : withoutInput(script)}\n`,
    onOutput(bytes) {
      if (!output.add(bytes)) session.close(tooLarge(maxBytes));
    },
    onMark(words) {
      const answer = answers.shift();
      if (answer) {
        answer();
        return;
      }
      session.end();
      settle();
      resolve({ fields: words.split(" "), output: output.read(), mark });
    },
    onLost(reason) {
      settle();
      reject(reason);
    },
  });
  return promise;
}

const withoutInput = (script: string) => `{
${script}
} </dev/null 2>/dev/null
${printSentinel("$r")}`;

/**
 * One compound command, so that the shell has read all of it before the input arrives. After a failure `grep` discards the
 * unread input, which may be long; the shell itself reads byte by byte.
 */
const withInput = (script: string) => `{
${printSentinel("ready")}
{
${script}
} 2>/dev/null
${printSentinel("through")}
l=
case $r in
0 | 0\\ *) read -r l; read -r l ;;
*) LC_ALL=C grep -qxF "$N" && l=$N ;;
esac
until [ "$l" = "$N" ]; do read -r l || exit; done
${printSentinel("$r")}
} 2>/dev/null`;

/** What to do when the shell reports that it is ready, and that the script has ended. */
function feed(session: OperationSession, input: Uint8Array, mark: string): (() => void)[] {
  let isThrough = false;
  let sending = Promise.resolve();
  const send = async () => {
    for (let at = 0; at < input.length && !isThrough; at += PIECE_BYTES)
      await session.write(input.subarray(at, at + PIECE_BYTES));
  };
  return [
    () => {
      sending = send();
      // A closed session reports itself through `onLost`.
      sending.catch(() => {});
    },
    () => {
      isThrough = true;
      sending.then(() => session.write(Buffer.from(`\n${mark}\n`))).catch(() => {});
    },
  ];
}

/** Collects output up to a limit; keeps nothing after `drop`. */
function gather(maxBytes: number) {
  let chunks: Buffer[] = [];
  let size = 0;
  let isDropped = false;
  return {
    /** False past the limit. */
    add(bytes: Buffer): boolean {
      size += bytes.length;
      if (size > maxBytes) return false;
      if (!isDropped) chunks.push(Buffer.from(bytes));
      return true;
    },
    drop() {
      isDropped = true;
      chunks = [];
    },
    read: () => (chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)),
  };
}

const tooSlow = () => new SandboxLostError(`its shell did not answer within ${DEADLINE_MS / 1000} s`);

const tooLarge = (maxBytes: number) =>
  new AppError("payload_too_large", `The output is larger than ${maxBytes} bytes, the maximum for one read.`);
