// Files of a workspace, as a helper in the sandbox sees them.

import { AppError } from "../../../core/errors.ts";
import { untilAborted } from "../../../lib/async.ts";
import { isInside } from "../../../lib/paths.ts";
import { failure, quoted, toRelative } from "../../paths.ts";
import type { Files } from "../files.ts";
import { STAGING } from "../prelude.ts";
import { quote, type SandboxLostError } from "../script.ts";
import type { OpenChannel } from "../session.ts";
import { CHUNK_BYTES } from "./frames.ts";
import { PROGRAM } from "./helper.ts";
import { Link, Refusal } from "./link.ts";
import { factsIn, listFolder, readContents, readPart, textIn, walk } from "./read.ts";

/** Of an answer without contents. */
const ANSWER_BYTES = 16 * 1024;
/** Of what is said while something large is removed. */
const PROGRESS_BYTES = 1024 * 1024;
const HIDDEN = STAGING.slice(0, STAGING.indexOf("/"));

export function perlFiles(link: Link, workdir: string): Files {
  const inside = (path: string): string => {
    const relative = toRelative(path, [workdir]);
    if (!isInside(STAGING, relative)) return relative;
    throw new AppError(
      "backend_refused",
      `${quoted(path)} is where files are kept while they are written. Use another path.`,
    );
  };
  /** Runs one operation, with what the helper refuses put into the port's words. */
  const on = async <T>(path: string, work: (relative: string) => Promise<T>): Promise<T> => {
    try {
      return await work(inside(path));
    } catch (error) {
      throw inWords(error, path);
    }
  };
  const absolute = (relative: string) => (relative === "" ? workdir : `${workdir}/${relative}`);

  return {
    workdir,

    stat: (path, signal) =>
      on(path, (relative) => {
        const request = { id: link.newId(), letter: "s", fields: [relative], maxBytes: ANSWER_BYTES };
        const read = (fields: readonly Buffer[]) => ({
          path: absolute(textIn(fields[3])),
          ...factsIn(fields, 0),
        });
        return link.ask({ ...request, read }, signal);
      }),

    async *read(path, { offset = 0, length = Number.POSITIVE_INFINITY }, signal) {
      try {
        yield* readPart(link, { relative: inside(path), offset, length }, signal);
      } catch (error) {
        throw inWords(error, path);
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
          .filter(({ name }) => folder !== "" || name !== HIDDEN)
          .map(({ name, ...facts }) => ({ path: `${absolute(folder)}/${name}`, ...facts }));
      }),

    remove: (path, signal) =>
      on(path, (relative) => {
        if (relative === "")
          throw new AppError(
            "backend_refused",
            "The workspace itself cannot be removed, only what is in it.",
          );
        const request = { id: link.newId(), letter: "d", fields: [relative], maxBytes: PROGRESS_BYTES };
        return link.ask({ ...request, read() {} }, signal);
      }),

    files: (folder, skipped, signal) => walk(link, folder, skipped, signal),

    contents: (paths, maxBytes, signal) => readContents(link, paths, maxBytes, signal),
  };
}

// What the helper refuses, in the words of the port: about the agent's path.

/** Anything but a refusal as it is. */
export function inWords(error: unknown, path: string): unknown {
  if (!(error instanceof Refusal)) return error;
  if (error.code === "CLOSED")
    return new AppError(
      "backend_failed",
      `${quoted(path)} was closed, because many others were opened meanwhile. Try again.`,
    );
  // It comes from a stranger, and becomes part of a message.
  return failure(/^[A-Z0-9_]{1,20}$/.test(error.code) ? error.code : "unknown error", path, error);
}

// A helper in the sandbox that does file operations many times faster than a shell can: a Perl program, for where
// there is a `perl`. It stands behind the same interface as the shell's own file operations.

/**
 * Every method throws `SandboxLostError` when the helper, or all that it runs in, goes away in the middle. What may be done
 * again then: `stat`, `list`, `files`, `contents`; a `read` that has yielded nothing; a `write` of bytes that are at
 * hand; and a `remove`, where `not_found` at the second attempt says that the first one did it.
 */
export interface PerlFiles extends Files {
  /** Resolves once the helper is gone or closed, with the reason. Never rejects. */
  readonly lost: Promise<SandboxLostError>;
  /** Ends the helper; what is under way throws `SandboxLostError` with this cause. Safe to repeat. */
  close(reason: Error): void;
}

/** What has no place in a program that others start. */
const UNSET = "PERL5OPT PERL5LIB PERL5DB PERLLIB PERLIO PERL_UNICODE";

/**
 * `workdir` is the workspace as the sandbox sees it. Undefined when there is no Perl that works, or no answer in five
 * seconds. Throws what `open` throws, or the signal's reason. The caller closes it.
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

// Writing a file through a helper, which puts it in its place when it is whole.
const WRITE_ANSWER_BYTES = 1024;
const NOTHING = new Uint8Array();

/** Returns the bytes written. */
export async function writeFile(
  link: Link,
  relative: string,
  data: Uint8Array | AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<number> {
  const id = link.newId();
  let written = 0;
  let isBegun = false;
  const put = async (bytes: Uint8Array, last: "0" | "1") => {
    const target = isBegun ? [] : [relative];
    const letter = isBegun ? "a" : "w";
    isBegun = true;
    const request = {
      ...{ id, letter, fields: [...target, last, bytes], maxBytes: WRITE_ANSWER_BYTES },
      read() {},
    };
    await link.ask(request, signal);
    written += bytes.length;
  };

  try {
    if (data instanceof Uint8Array) await putAll(data, put, "1");
    else {
      for await (const chunk of untilAborted(data, signal)) await putAll(chunk, put, "0");
      await put(NOTHING, "1");
    }
  } catch (error) {
    if (isBegun) link.giveUp(id);
    throw error;
  }
  return written;
}

async function putAll(
  bytes: Uint8Array,
  put: (bytes: Uint8Array, last: "0" | "1") => Promise<void>,
  last: "0" | "1",
): Promise<void> {
  let at = 0;
  for (; at + CHUNK_BYTES < bytes.length; at += CHUNK_BYTES)
    await put(bytes.subarray(at, at + CHUNK_BYTES), "0");
  await put(bytes.subarray(at), last);
}
