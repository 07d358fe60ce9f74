// A script and the way a shell session runs it: how the script is wrapped, how it receives its input, and how long it may
// take.
//
// A shell reads its script and the script's input from one stream, and reads ahead. The input is therefore sent after the
// shell reports that it has read the whole script, and nothing follows until it reports the script's end. Unread input is
// then discarded up to a line that is unique to this operation.

import { AppError } from "../../agent/core/errors.ts";
import { randomId } from "../../lib/random-id.ts";

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
const DEADLINE_MS = 20_000;
const SILENCE_MS = 1500;
const PIECE_BYTES = 64 * 1024;

/** A piece of shell script. It contains user text only as `quote`d words. */
export interface ShellScript {
  /**
   * The script, which runs in a session that has the functions of the prelude. `$N` is the operation's mark, standard
   * error is discarded, and standard input is empty unless `input` is set. The script sets `r` to words that are
   * returned as `fields`. The first word is a status (0 = success). The script may change the working directory and any
   * variable.
   */
  readonly script: string;
  /** The bytes for standard input. One command must read exactly this number of bytes (`head -c`). */
  readonly input?: Uint8Array;
  /** The maximum number of bytes of output. If the script prints more, it fails with `payload_too_large`. */
  readonly maxBytes?: number;
}

export interface ScriptReply {
  /** The words in `r`, split at spaces. */
  readonly fields: readonly string[];
  /** The script's standard output. */
  readonly output: Buffer;
  /** The operation's mark: a random word that no file contains by chance. */
  readonly mark: string;
}

/**
 * Thrown if the shell ended during an operation, possibly with the sandbox. The operation's effect is
 * unknown.
 */
export class SandboxLostError extends Error {
  override name = "SandboxLostError";
}

export interface ScriptRunner {
  /**
   * Runs a script that is safe to run twice, and repeats it after a loss. Throws the signal's reason,
   * `payload_too_large`, or `backend_failed`/`unavailable` if the sandbox is unavailable.
   */
  run(script: ShellScript, signal: AbortSignal): Promise<ScriptReply>;
  /** Runs a script once. In addition, throws `SandboxLostError`. */
  runOnce(script: ShellScript, signal: AbortSignal): Promise<ScriptReply>;
}

/** An operation of a session. It receives all output until it calls `end`. */
export interface Operation {
  /** The first word of the operation's sentinels. */
  readonly mark: string;
  readonly script: string;
  /** Receives output between the sentinels. `bytes` are valid until the call returns. */
  onOutput(bytes: Buffer): void;
  onMark(words: string): void;
  onErrorOutput?(bytes: Buffer): void;
  /** Called if the session closed before the operation ended. No further call follows. */
  onLost(reason: Error): void;
}

/** A shell that runs one operation at a time. */
export interface OperationSession {
  /** Begins an operation. Call it only while the session is idle. */
  begin(operation: Operation): void;
  /** Ends the operation. The shell prints nothing more for this operation. */
  end(): void;
  /**
   * Writes to the shell's standard input. Resolves when the shell accepts more. Rejects once the session is
   * closed.
   */
  write(bytes: Uint8Array): Promise<void>;
  close(reason: Error): void;
}

export interface ScriptTimeouts {
  readonly signal: AbortSignal;
  /** Called if the shell has not answered for `SILENCE_MS`. */
  readonly onSilence?: () => void;
}

/** Quotes text as one shell word. */
export const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** Returns a shell command that prints a sentinel. `words` is put between double quotes. */
export const printSentinel = (words: string) => `printf '\\036%s %s\\n' "$N" "${words}"`;

/**
 * Runs a script. Throws the signal's reason, `payload_too_large` or `SandboxLostError`. An abort rejects at once, but
 * the session is free only after the script has ended. A script that takes too long or prints too much closes its
 * session.
 */
export async function runScript(
  session: OperationSession,
  { script, input, maxBytes = MAX_OUTPUT_BYTES }: ShellScript,
  { signal, onSilence }: ScriptTimeouts,
): Promise<ScriptReply> {
  signal.throwIfAborted();
  const mark = randomId();
  const { promise, resolve, reject } = Promise.withResolvers<ScriptReply>();
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
 * Wraps the script in one compound command, so the shell has read all of it before the input arrives. After a failure,
 * `grep` discards the unread input, which may be long. The shell itself would read it byte by byte.
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

/**
 * Returns two handlers, one to call when the shell is ready for input, and one to call when the script has
 * ended.
 */
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
      // A session that closes reports this through `onLost`.
      sending.catch(() => {});
    },
    () => {
      isThrough = true;
      sending.then(() => session.write(Buffer.from(`\n${mark}\n`))).catch(() => {});
    },
  ];
}

/** Collects output up to a limit. Keeps nothing after `drop`. */
function gather(maxBytes: number) {
  let chunks: Buffer[] = [];
  let size = 0;
  let isDropped = false;
  return {
    /** Adds output. Returns false if it exceeds the limit. */
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
