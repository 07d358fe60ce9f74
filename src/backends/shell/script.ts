// One fragment, run in a lane: how its script is wrapped, how its input reaches it, and how long it may take.
//
// A shell reads its script from where a fragment reads its input, and it reads ahead. So the input is sent when the
// shell says that it has read all of the script, and nothing follows the input until the shell says that it is
// through. What the fragment has left of its input is then read away, up to a line that only this operation knows.

import { AppError } from "../../core/errors.ts";
import { randomId } from "../../lib/random-id.ts";

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
const DEADLINE_MS = 20_000;
const SILENCE_MS = 1500;
const PIECE_BYTES = 64 * 1024;

/** The operation that a lane runs. It gets all output until it reports that it has ended. */
export interface Operation {
  /** The word that all its marks begin with. */
  readonly mark: string;
  readonly script: string;
  /** What the shell prints between the marks; `bytes` may be used until the call returns. */
  onOutput(bytes: Buffer): void;
  onMark(words: string): void;
  onErrorOutput?(bytes: Buffer): void;
  /** The lane was closed before it was over. Nothing comes after this. */
  onLost(reason: Error): void;
}

/** A shell that does one operation at a time. */
export interface OperationSession {
  /** Only while it does nothing else. */
  begin(operation: Operation): void;
  /** The operation is over: the shell has said all that it had to say. */
  end(): void;
  /** To the shell's standard input. Resolves when more may be written, rejects when the lane is closed. */
  write(bytes: Uint8Array): Promise<void>;
  close(reason: Error): void;
}

export interface ScriptTimeouts {
  readonly signal: AbortSignal;
  /** Called when there is no answer for long. */
  readonly onSilence?: () => void;
}

/**
 * Throws the signal's reason, `payload_too_large` or `SandboxLostError`. Whoever gives up is answered at once; the lane is
 * free when the fragment has ended by itself. One that prints or takes too much is not waited for: its lane is closed.
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
 * All of it is one command, so that none of it is unread when the input comes. What is left after a failure may be
 * long, and is left to `grep`; the shell itself reads byte by byte.
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

/** What is done when the shell says that it is ready, and that it is through. */
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
      // When the lane is closed, the operation learns it from the lane.
      sending.catch(() => {});
    },
    () => {
      isThrough = true;
      sending.then(() => session.write(Buffer.from(`\n${mark}\n`))).catch(() => {});
    },
  ];
}

/** Output up to a limit; once it is dropped, nothing of it is kept. */
function gather(maxBytes: number) {
  let chunks: Buffer[] = [];
  let size = 0;
  let isDropped = false;
  return {
    /** False when it was too much. */
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
  new AppError("payload_too_large", `There is more than the ${maxBytes} bytes that may be read at once.`);

// The seam between what is done in a shell and who sees to it that there is one.

/** A piece of shell script, made by us. User text is in it only as `quote`d words. */
export interface ShellScript {
  /**
   * Runs in a lane whose shell knows the functions of the prelude, with `$N` = the operation's mark, standard
   * error thrown away and, unless there is `input`, nothing to read. Sets `r`: words that come back as `fields`,
   * the first of them a status, 0 = fine. It may change the working directory and any variable.
   */
  readonly script: string;
  /** Exactly these bytes can be read from standard input, by one command that reads exactly so many (`head -c`). */
  readonly input?: Uint8Array;
  /** Of its output, in bytes. More of it fails the operation with `payload_too_large`. */
  readonly maxBytes?: number;
}

export interface Reply {
  /** `r`, split at spaces. */
  readonly fields: readonly string[];
  /** Its standard output. */
  readonly output: Buffer;
  /** The operation's mark, which no file can hold by chance. */
  readonly mark: string;
}

/** Thrown when the shell, or all that it ran in, went away in the middle: what was done is not known. */
export class SandboxLostError extends Error {
  override name = "LaneLost";
}

export interface ScriptRunner {
  /**
   * Runs a fragment that may safely run twice: after a loss it is run again. Throws the signal's reason,
   * `payload_too_large`, or `backend_failed`/`unavailable` when there is no sandbox to be had.
   */
  run(fragment: ShellScript, signal: AbortSignal): Promise<Reply>;
  /** Runs a fragment once. Throws `SandboxLostError` as well. */
  runOnce(fragment: ShellScript, signal: AbortSignal): Promise<Reply>;
}

/** Text as one word of a shell. */
export const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** Prints a mark in a shell; `words` is what stands between the double quotes. */
export const printSentinel = (words: string) => `printf '\\036%s %s\\n' "$N" "${words}"`;
