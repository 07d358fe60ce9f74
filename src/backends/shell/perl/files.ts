// Files of a workspace, as a helper in the sandbox sees them.

import { AppError } from "../../../core/errors.ts";
import { isInside } from "../../../lib/inside.ts";
import { failure } from "../../failures.ts";
import { quoted, toRelative } from "../../paths.ts";
import type { Files } from "../files.ts";
import { STAGING } from "../prelude.ts";
import { factsIn, textIn } from "./answers.ts";
import { listFolder, walk } from "./folders.ts";
import type { Link } from "./link.ts";
import { readContents, readPart } from "./reading.ts";
import { inWords } from "./words.ts";
import { writeFile } from "./writing.ts";

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
