// The tools write_file and edit_file, and the thread's record of their changes.

import { createHash } from "node:crypto";
import { z } from "zod";
import type { Backend } from "../../core/backend.ts";
import { hasCode } from "../../core/errors.ts";
import { patchState, withResult } from "../../core/run.ts";
import type { Stream } from "../../core/stream.ts";
import { defineTool, type Run, type Tool } from "../../core/tool.ts";
import { path, takingFilePath } from "./read.ts";

/** A value in the state key `files`, by absolute path: the agent's last change to the file. */
interface FileRecord {
  readonly bytes: number;
  readonly sha256: string;
  readonly op: "write" | "edit";
  /** The new content. Only for small text files. */
  readonly content?: string;
  /** The content before the change. Only for small text files. Empty if the file did not exist. */
  readonly before?: string;
}

/** The maximum number of records. When there are more, the oldest record is dropped. */
const MAX_RECORDS = 500;
/**
 * The maximum number of records with `before`. When there are more, the oldest of these records loses its
 * `before`.
 */
const MAX_BEFORE = 100;
const MAX_CONTENT_BYTES = 16 * 1024;
/**
 * The maximum number of characters in all records together. When there are more, the oldest records lose both
 * texts. The limit exists because every run reads and parses all records.
 */
const MAX_TEXT_CHARS = 1024 * 1024;

export function writeFile(backend: Backend): Tool {
  return takingFilePath(
    defineTool({
      name: "write_file",
      description: "Write a whole file. Creates missing folders and replaces an existing file.",
      parameters: z.object({ path, content: z.string() }),
      annotations: { idempotent: true, category: "write" },
      describeCall: ({ path, content }) =>
        `write ${Buffer.byteLength(content)} bytes to the file \`${path}\``,
      async *execute({ path, content }, _call, run) {
        const bytes = Buffer.from(content);
        const before = await textBefore(backend, path, run.signal);
        const bytes_written = await backend.write(path, bytes, run.signal);
        const file = await backend.stat(path, run.signal);
        yield* record(run, file.path, { ...recordOf(bytes, "write"), ...before });
        return JSON.stringify({ path: file.path, bytes_written });
      },
    }),
  );
}

/** No model would replace a longer text at once. */
const MAX_OLD_TEXT = 200_000;
const oldText = z
  .string()
  .refine(
    ({ length }) => length <= MAX_OLD_TEXT,
    `must have at most ${MAX_OLD_TEXT} characters; use write_file`,
  );

export function editFile(backend: Backend): Tool {
  return takingFilePath(
    defineTool({
      name: "edit_file",
      description:
        "Replace the first occurrence of old_text in a file with new_text. old_text must match exactly, including white space, and be long enough to be unique.",
      parameters: z.object({ path, old_text: oldText, new_text: z.string() }),
      annotations: { category: "write" },
      describeCall: ({ path }) => `change the file \`${path}\``,
      async *execute({ path, old_text, new_text }, _call, run) {
        const before = await textBefore(backend, path, run.signal);
        await backend.edit(path, old_text, new_text, run.signal);
        const file = await backend.stat(path, run.signal);
        yield* record(run, file.path, { ...(await recordOfFile(backend, path, run.signal)), ...before });
        return JSON.stringify({ path: file.path, bytes: file.size });
      },
    }),
  );
}

async function* record(run: Run, path: string, entry: FileRecord): Stream<void> {
  // The cast is safe, because only this function writes this key.
  const records = (run.state.get("files") ?? {}) as Record<string, FileRecord>;
  const [oldest] = Object.keys(records);
  const isFull = !(path in records) && Object.keys(records).length >= MAX_RECORDS;
  const others = Object.entries(records).filter(
    ([each, { before }]) => each !== path && before !== undefined,
  );
  const forgetful = others.slice(0, Math.max(0, others.length + 1 - MAX_BEFORE));
  const change = patchState(run, "files", {
    ...Object.fromEntries(forgetful.map(([each, { before: _, ...rest }]) => [each, rest])),
    ...withoutTexts(
      Object.entries(records).filter(([each]) => each !== path),
      textsOf(entry),
    ),
    ...(isFull && oldest !== undefined ? { [oldest]: null } : {}),
    [path]: entry,
  });
  yield* withResult(change);
}

/**
 * Returns the records that exceed the space for texts, with their texts removed. `taken` is the number of
 * characters in other texts.
 */
function withoutTexts(
  records: readonly (readonly [path: string, record: FileRecord])[],
  taken: number,
): Record<string, FileRecord> {
  const bare: Record<string, FileRecord> = {};
  let left = MAX_TEXT_CHARS - taken;
  for (const [path, record] of records.toReversed()) {
    left -= textsOf(record);
    const { content: _, before: __, ...rest } = record;
    if (left < 0 && textsOf(record) > 0) bare[path] = rest;
  }
  return bare;
}

const textsOf = ({ content = "", before = "" }: FileRecord) => content.length + before.length;

/**
 * Reads the content of a file before a change. Never throws, because the change itself reports any problem
 * with the path.
 */
async function textBefore(
  backend: Backend,
  path: string,
  signal: AbortSignal,
): Promise<Pick<FileRecord, "before">> {
  try {
    const { type, size } = await backend.stat(path, signal);
    if (type !== "file" || size > MAX_CONTENT_BYTES) return {};
    const chunks: Uint8Array[] = [];
    for await (const chunk of backend.read(path, { length: MAX_CONTENT_BYTES }, signal)) chunks.push(chunk);
    const { content } = contentOf(Buffer.concat(chunks));
    return content === undefined ? {} : { before: content };
  } catch (error) {
    return hasCode(error, "not_found") ? { before: "" } : {};
  }
}

function recordOf(bytes: Buffer, op: FileRecord["op"]): FileRecord {
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  return { bytes: bytes.length, sha256, op, ...contentOf(bytes) };
}

/** Reads the edited file, but keeps no more of it than a record contains. */
async function recordOfFile(backend: Backend, path: string, signal: AbortSignal): Promise<FileRecord> {
  const hash = createHash("sha256");
  const start: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of backend.read(path, {}, signal)) {
    hash.update(chunk);
    bytes += chunk.length;
    if (bytes <= MAX_CONTENT_BYTES) start.push(chunk);
  }
  return {
    bytes,
    sha256: hash.digest("hex"),
    op: "edit",
    ...(bytes <= MAX_CONTENT_BYTES ? contentOf(Buffer.concat(start)) : {}),
  };
}

function contentOf(bytes: Buffer): Pick<FileRecord, "content"> {
  if (bytes.length > MAX_CONTENT_BYTES) return {};
  try {
    return { content: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch {
    return {};
  }
}
