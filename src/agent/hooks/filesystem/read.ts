// The read-only tools: ls, glob, grep and read_file.

import { TextDecoder } from "node:util";
import { z } from "zod";
import { firstChars } from "../../../lib/text.ts";
import { timeSlices } from "../../../lib/ticks.ts";
import { hasLongRowOfMarks } from "../../../lib/unicode.ts";
import { utf16Of } from "../../../lib/utf16.ts";
import type { Backend } from "../../core/backend.ts";
import { AppError } from "../../core/errors.ts";
import { defineTool, type Tool } from "../../core/tool.ts";

const annotations = { readOnly: true, category: "read", requiresPermission: false } as const;

const MAX_LISTED = 1000;

export function ls(backend: Backend): Tool {
  return takingFilePath(
    defineTool({
      name: "ls",
      description: "List the entries of a folder with their name, type and size in bytes.",
      parameters: z.object({ path: folder }),
      annotations,
      async execute({ path }, _call, run) {
        const entries = await backend.list(path, run.signal);
        const shown = entries.slice(0, MAX_LISTED).map(({ path, type, size }) => ({
          name: path.slice(path.lastIndexOf("/") + 1),
          type,
          size,
        }));
        const isWhole = entries.length <= MAX_LISTED;
        return withNotice(shown, isWhole, `Only the first ${MAX_LISTED} entries. Use glob to find others.`);
      },
    }),
  );
}

export function glob(backend: Backend): Tool {
  return takingFilePath(
    defineTool({
      name: "glob",
      description:
        "Find files by name. `*.py` finds names at any depth, `src/**/*.ts` whole paths; also ?, [a-z] and {a,b}. Returns absolute paths.",
      parameters: z.object({ pattern: z.string().min(1), path: folder }),
      annotations,
      async execute({ pattern, path }, _call, run) {
        const { matches, truncated } = await backend.glob(pattern, path, run.signal);
        return withNotice(matches, !truncated, "There are more. Use a narrower pattern or path.");
      },
    }),
  );
}

export function grep(backend: Backend): Tool {
  return takingFilePath(
    defineTool({
      name: "grep",
      description:
        "Find lines in files by regular expression (RE2: no look-around or back-references; (?i) ignores case).",
      parameters: z.object({
        pattern: z.string().min(1),
        path: folder.describe("Folder or file to search. Default: the workspace."),
        include: z.string().min(1).optional().describe("Only files that match this glob, for example *.ts."),
      }),
      annotations,
      async execute({ pattern, path, include }, _call, run) {
        const { skipped = 0, ...found } = await backend.grep(pattern, path, include, run.signal);
        const notice = `${skipped} files were not searched: they are not text, larger than 10 MiB or not readable.`;
        return JSON.stringify(found) + (skipped > 0 ? `\n\n[${notice}]` : "");
      },
    }),
  );
}

const withNotice = (list: readonly unknown[], isWhole: boolean, notice: string) =>
  JSON.stringify(list) + (isWhole ? "" : `\n\n[${notice}]`);

/** The maximum length of a path on Linux. */
const MAX_PATH = 4096;

export const path = z
  .string()
  .min(1)
  .refine(({ length }) => length <= MAX_PATH, `must have at most ${MAX_PATH} characters`)
  .refine((text) => !hasLongRowOfMarks(text), "must not have long rows of combining marks")
  .describe("Relative to the workspace, or absolute inside it.");
export const folder = path.default(".").describe("Folder to look in. Default: the workspace.");

/** Accepts `file_path` as well as `path`, because some models write it. */
export function takingFilePath(tool: Tool): Tool {
  return {
    ...tool,
    parse({ file_path, ...args }) {
      return tool.parse(file_path === undefined ? args : { path: file_path, ...args });
    },
  };
}

const DEFAULT_LINES = 2000;
const MAX_CHARS = 60_000;
/** The maximum number of bytes of a file whose base64 form fits into `MAX_CHARS`. */
const MAX_BINARY_BYTES = 45_000;

export function readFile(backend: Backend): Tool {
  return takingFilePath(
    defineTool({
      name: "read_file",
      description: `Read a text file, ${DEFAULT_LINES} lines at a time. For a file that is not text, returns base64: and its first bytes.`,
      parameters: z.object({
        path,
        offset: z.int().min(1).default(1).describe("First line to read, counted from 1."),
        limit: z.int().min(1).default(DEFAULT_LINES).describe("Number of lines."),
      }),
      annotations: { readOnly: true, category: "read", requiresPermission: false },
      async execute({ path, offset, limit }, _call, run) {
        const lines = await readLines(backend, path, { offset, limit }, run.signal);
        const isText = lines !== undefined && !lines.text.includes("\0");
        return isText ? shown(lines, path, offset) : readBinary(backend, path, run.signal);
      },
    }),
  );
}

/**
 * Reads lines of a file. Returns undefined when the requested part is neither UTF-8 nor UTF-16 with a byte
 * order mark.
 */
async function readLines(
  backend: Backend,
  path: string,
  { offset, limit }: { offset: number; limit: number },
  signal: AbortSignal,
): Promise<Lines | undefined> {
  let decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let isFirst = true;
  const window = lineWindow(offset, limit, MAX_CHARS);
  const clock = timeSlices(signal, Number.POSITIVE_INFINITY);
  for await (const chunk of backend.read(path, {}, signal)) {
    const order = isFirst ? utf16Of(chunk) : undefined;
    if (order) decoder = new TextDecoder(order, { fatal: true });
    isFirst = false;
    const piece = decoded(decoder, chunk);
    if (piece === undefined) return undefined;
    if (!window.take(piece)) return window.end();
    if (clock.isDue()) await clock.rest();
  }
  return decoded(decoder) === undefined ? undefined : window.end();
}

/**
 * Decodes a chunk, or the end of the text if no chunk is given. Returns undefined when the bytes do not match
 * the encoding of `decoder`.
 */
function decoded(decoder: TextDecoder, chunk?: Uint8Array): string | undefined {
  try {
    return decoder.decode(chunk, { stream: chunk !== undefined });
  } catch {
    return undefined;
  }
}

function shown({ text, lastLine, isMore, isLineCut }: Lines, path: string, offset: number): string {
  if (text === "" && lastLine === 0) return "[The file is empty.]";
  if (text === "")
    throw new AppError(
      "invalid_request",
      `\`${path}\` has ${lastLine} lines; offset ${offset} is past its end.`,
    );
  if (isLineCut)
    return `${text}\n\n[Line ${offset} is cut here, after ${text.length} characters. Use execute to see the rest of it; read on with offset ${offset + 1}.]`;
  return isMore ? `${text}\n[Lines ${offset} to ${lastLine}. Read on with offset ${lastLine + 1}.]` : text;
}

async function readBinary(backend: Backend, path: string, signal: AbortSignal): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of backend.read(path, { length: MAX_BINARY_BYTES }, signal)) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const { size } = await backend.stat(path, signal);
  const notice = size > bytes.length ? `\n\n[The first ${bytes.length} of ${size} bytes.]` : "";
  return `base64:${bytes.toString("base64")}${notice}`;
}

export interface LineWindow {
  /** Returns false once the window is full. */
  take(piece: string): boolean;
  end(): Lines;
}

export interface Lines {
  /** Complete lines with their line endings, unless `isLineCut` is set. */
  readonly text: string;
  /**
   * The number of the last line, from 1. One less than the first requested line if that line does not exist.
   */
  readonly lastLine: number;
  /** True if the file has lines after `lastLine`. */
  readonly isMore: boolean;
  /** True if the only line of the window was too long and was cut. */
  readonly isLineCut: boolean;
}

/**
 * Collects the lines `first` to `first + count - 1`, up to as many complete lines as fit into `maxChars`.
 * Uses little more memory than these lines need.
 */
export function lineWindow(first: number, count: number, maxChars: number): LineWindow {
  let text = "";
  /** The number of the next or unfinished line. */
  let line = 1;
  let isInLine = false;
  let isMore = false;

  const next = (piece: string, at: number) => {
    const end = piece.indexOf("\n", at) + 1 || piece.length;
    isInLine = piece.charCodeAt(end - 1) !== 0x0a;
    if (!isInLine) line++;
    return end;
  };

  return {
    take(piece) {
      let at = 0;
      while (at < piece.length && line < first) at = next(piece, at);
      while (at < piece.length && text.length <= maxChars) {
        isMore = line >= first + count;
        if (isMore) return false;
        const start = at;
        at = next(piece, at);
        text += piece.slice(start, at);
      }
      return text.length <= maxChars;
    },
    end() {
      const lastLine = isInLine && !isMore ? line : line - 1;
      if (text.length <= maxChars) return { text, lastLine, isMore, isLineCut: false };
      const fitting = text.slice(0, text.lastIndexOf("\n", maxChars - 1) + 1);
      if (fitting === "")
        return { text: firstChars(text, maxChars), lastLine: first, isMore: true, isLineCut: true };
      return {
        text: fitting,
        lastLine: first + fitting.split("\n").length - 2,
        isMore: true,
        isLineCut: false,
      };
    },
  };
}
