// File operations through the file helper, a Perl program in the sandbox that is many times faster than shell
// scripts.

import { AppError } from "../../../agent/core/errors.ts";
import { untilAborted } from "../../../lib/async.ts";
import { assertRemovable, failure, quoted } from "../../paths.ts";
import type { Files } from "../files.ts";
import { relativePath, STAGING_ROOT } from "../prelude.ts";
import { quote, type SandboxLostError } from "../script.ts";
import type { OpenChannel } from "../session.ts";
import { CHUNK_BYTES } from "./frames.ts";
import { PROGRAM } from "./helper.ts";
import { HelperError, Link } from "./link.ts";
import { factsIn, findFiles, listFolder, readContents, readPart, textIn } from "./read.ts";

/** The maximum size of an answer, not counting file contents, in bytes. */
const ANSWER_BYTES = 16 * 1024;
/** The maximum size of progress reports while a large folder is removed, in bytes. */
const PROGRESS_BYTES = 1024 * 1024;
const NOTHING = new Uint8Array();
/** The variables that would change how Perl starts. */
const UNSET = "PERL5OPT PERL5LIB PERL5DB PERLLIB PERLIO PERL_UNICODE";

/**
 * Every method throws `SandboxLostError` if the helper or its sandbox ends during the call. It is then safe to repeat
 * `stat`, `list`, `files` and `contents`, a `read` that has yielded nothing, a `write` of bytes in memory, and a
 * `remove`. For a repeated `remove`, `not_found` means that the first attempt succeeded.
 */
export interface PerlFiles extends Files {
  /** Resolves with the reason once the helper has ended. Never rejects. */
  readonly lost: Promise<SandboxLostError>;
  /** Ends the helper. Running calls throw `SandboxLostError` with this cause. Safe to repeat. */
  close(reason: Error): void;
}

/**
 * `workdir` is the workspace's path in the sandbox. Returns undefined if the sandbox has no working Perl or does not
 * answer within five seconds. Throws the errors of `open` or the signal's reason. The caller closes the helper.
 */
export async function openPerl(
  open: OpenChannel,
  workdir: string,
  signal: AbortSignal,
): Promise<PerlFiles | undefined> {
  const script = `unset ${UNSET}; exec 2>/dev/null perl -e ${quote(PROGRAM)} ${quote(workdir)}\n`;
  const link = await Link.start(open, script, signal);
  return link && { ...perlFiles(link, workdir), lost: link.lost, close: (reason) => link.close(reason) };
}

function perlFiles(link: Link, workdir: string): Files {
  /** Runs one operation and reports a refusal by the helper as a failure that concerns `path`. */
  const on = async <T>(path: string, work: (relative: string) => Promise<T>): Promise<T> => {
    try {
      return await work(relativePath(path, workdir));
    } catch (error) {
      throw toAppError(error, path);
    }
  };
  const absolute = (relative: string) => (relative === "" ? workdir : `${workdir}/${relative}`);

  return {
    workdir,

    stat: (path, signal) =>
      on(path, (relative) => {
        const read = (fields: readonly Buffer[]) => ({
          path: absolute(textIn(fields[3])),
          ...factsIn(fields, 0),
        });
        return link.ask({ letter: "s", fields: [relative], maxBytes: ANSWER_BYTES, read }, signal);
      }),

    async *read(path, { offset = 0, length = Number.POSITIVE_INFINITY }, signal) {
      try {
        yield* readPart(link, { relative: relativePath(path, workdir), offset, length }, signal);
      } catch (error) {
        throw toAppError(error, path);
      }
    },

    write: (path, data, signal) =>
      on(path, (relative) => {
        if (relative === "") throw failure("EISDIR", path);
        return writeFile(link, relative, data, signal);
      }),

    list: (path, signal) =>
      on(path, async (relative) => {
        const { folder, entries } = await listFolder(link, relative, signal);
        return entries
          .filter(({ name }) => folder !== "" || name !== STAGING_ROOT)
          .map(({ name, ...facts }) => ({ path: `${absolute(folder)}/${name}`, ...facts }));
      }),

    remove: (path, signal) =>
      on(path, (relative) => {
        assertRemovable(relative);
        const read = () => {};
        return link.ask({ letter: "d", fields: [relative], maxBytes: PROGRESS_BYTES, read }, signal);
      }),

    files: (folder, skipped, signal) => findFiles(link, folder, skipped, signal),

    contents: (paths, maxBytes, signal) => readContents(link, paths, maxBytes, signal),
  };
}

function toAppError(error: unknown, path: string): unknown {
  if (!(error instanceof HelperError)) return error;
  if (error.code === "CLOSED")
    return new AppError(
      "backend_failed",
      `${quoted(path)} was closed because too many other files were opened. Try again.`,
    );
  // The sandbox is untrusted, and the code becomes part of a message.
  return failure(/^[A-Z0-9_]{1,20}$/.test(error.code) ? error.code : "unknown error", path, error);
}

/** Writes a file. The helper moves the complete file to its place. Returns the number of bytes written. */
async function writeFile(
  link: Link,
  relative: string,
  data: Uint8Array | AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<number> {
  const id = link.newId();
  let written = 0;
  let isBegun = false;
  const send = async (bytes: Uint8Array, last: "0" | "1") => {
    const fields = isBegun ? [last, bytes] : [relative, last, bytes];
    const letter = isBegun ? "a" : "w";
    isBegun = true;
    await link.ask({ id, letter, fields, maxBytes: ANSWER_BYTES, read() {} }, signal);
    written += bytes.length;
  };
  const sendAll = async (bytes: Uint8Array, last: "0" | "1") => {
    let at = 0;
    for (; at + CHUNK_BYTES < bytes.length; at += CHUNK_BYTES)
      await send(bytes.subarray(at, at + CHUNK_BYTES), "0");
    await send(bytes.subarray(at), last);
  };

  try {
    if (data instanceof Uint8Array) await sendAll(data, "1");
    else {
      for await (const chunk of untilAborted(data, signal)) await sendAll(chunk, "0");
      await send(NOTHING, "1");
    }
  } catch (error) {
    if (isBegun) link.drop(id);
    throw error;
  }
  return written;
}
