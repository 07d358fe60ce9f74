// read_file: a window of lines of a text file; of any other file, its first bytes.

import { TextDecoder } from "node:util";
import { z } from "zod";
import type { Backend } from "../../core/backend.ts";
import { AppError } from "../../core/errors.ts";
import { defineTool, type Tool } from "../../core/tool.ts";
import { pace } from "../../lib/pace.ts";
import { type Lines, lineWindow } from "./line-window.ts";
import { path, takingFilePath } from "./path.ts";

const DEFAULT_LINES = 2000;
const MAX_CHARS = 60_000;
/** In base64 they make `MAX_CHARS`. */
const MAX_BINARY_BYTES = 45_000;

export function readFile(backend: Backend): Tool {
  return takingFilePath(
    defineTool({
      name: "read_file",
      description: `Read a text file, ${DEFAULT_LINES} lines at a time. A file that is not UTF-8 comes as base64: and its first bytes.`,
      parameters: z.object({
        path,
        offset: z.int().min(1).default(1).describe("First line, from 1."),
        limit: z.int().min(1).default(DEFAULT_LINES).describe("Number of lines."),
      }),
      annotations: { readOnly: true, category: "read", requiresPermission: false },
      async execute({ path, offset, limit }, _call, run) {
        const lines = await readLines(backend, path, { offset, limit }, run.signal);
        return lines ? shown(lines, path, offset) : readBinary(backend, path, run.signal);
      },
    }),
  );
}

/** Nothing when the file is not UTF-8, as far as it was read. */
async function readLines(
  backend: Backend,
  path: string,
  { offset, limit }: { offset: number; limit: number },
  signal: AbortSignal,
): Promise<Lines | undefined> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const window = lineWindow(offset, limit, MAX_CHARS);
  const clock = pace(signal, Number.POSITIVE_INFINITY);
  for await (const chunk of backend.read(path, {}, signal)) {
    const piece = decoded(decoder, chunk);
    if (piece === undefined) return undefined;
    if (!window.take(piece)) return window.end();
    if (clock.isDue()) await clock.rest();
  }
  return decoded(decoder) === undefined ? undefined : window.end();
}

/** Without a chunk: the end. Nothing when it is not UTF-8. */
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
