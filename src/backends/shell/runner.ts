// The seam between what is done in a shell and who sees to it that there is one.

/** A piece of shell script, made by us. User text is in it only as `quote`d words. */
export interface Fragment {
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
export class LaneLost extends Error {
  override name = "LaneLost";
}

export interface Runner {
  /**
   * Runs a fragment that may safely run twice: after a loss it is run again. Throws the signal's reason,
   * `payload_too_large`, or `backend_failed`/`unavailable` when there is no sandbox to be had.
   */
  run(fragment: Fragment, signal: AbortSignal): Promise<Reply>;
  /** Runs a fragment once. Throws `LaneLost` as well. */
  runOnce(fragment: Fragment, signal: AbortSignal): Promise<Reply>;
}

/** Text as one word of a shell. */
export const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
