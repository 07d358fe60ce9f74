// Reads files. A small file is read with one script. A large file is read in pieces, so no session waits for a slow reader.
// Hundreds of files take only two processes. One prints their sizes, and the other prints their contents.
//
// While a large file is read, a hard link in staging pins it, so all pieces come from the same file.

import { randomBytes } from "node:crypto";
import type { ByteRange } from "../../agent/core/backend.ts";
import { AppError } from "../../agent/core/errors.ts";
import { failure } from "../paths.ts";
import { discard, entriesIn, perform, type ScriptTarget, stagingName, wordsOf } from "./prelude.ts";
import { quote } from "./script.ts";

const BLOCK_BYTES = 64 * 1024;
const PIECE_BYTES = 8 * BLOCK_BYTES;

/** Reads up to the size that the file has when it is opened. */
export async function* readFile(
  target: ScriptTarget,
  { offset = 0, length = Number.POSITIVE_INFINITY }: ByteRange,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  if (offset === 0) {
    const wanted = Math.min(length, PIECE_BYTES);
    const script = `fs_file ${wordsOf(target)} && { head -c ${wanted} "./$n" || r=EIO; }`;
    const { output } = await perform(target, { script, maxBytes: wanted }, signal);
    if (wanted === length || output.length < wanted) {
      if (output.length > 0) yield output;
      return;
    }
  }
  yield* readPieces(target, offset, offset + length, signal);
}

async function* readPieces(target: ScriptTarget, start: number, limit: number, signal: AbortSignal) {
  const name = stagingName();
  try {
    const opened = await open(target, name, signal);
    const end = Math.min(limit, opened.size);
    for (let at = start; at < end; ) {
      const bytes = await readPiece(target, opened, { at, end }, signal);
      if (bytes.length === 0) return;
      at += bytes.length;
      yield bytes;
    }
  } finally {
    await discard(target, name);
  }
}

interface OpenFile {
  readonly size: number;
  /** A script that sets "$f" to the file. */
  readonly find: string;
}

/** Opens a file. If no link can be created, each piece looks up the file and compares its inode. */
async function open(target: ScriptTarget, name: string, signal: AbortSignal): Promise<OpenFile> {
  const find = `fs_file ${wordsOf(target)} && f=./$n`;
  const script = `${find} && {
    held=
    fs_stage && ln -f "$f" "$S/${name}" && f=$S/${name} && held=held
    r="0 $(stat -c '%s %i' "$f") $held"
  }`;
  const { fields } = await perform(target, { script }, signal);
  const [, size, inode, held] = fields;
  if (!inode) throw failure("GONE", target.path);
  return {
    size: Number(size),
    find: held
      ? `fs_root ${quote(target.workdir)} && f=$S/${name} && { [ -f "$f" ] || r=GONE; }`
      : `${find} && { [ "$(stat -c %i "$f")" = ${quote(inode)} ] || r=GONE; }`,
  };
}

async function readPiece(
  target: ScriptTarget,
  { find }: OpenFile,
  { at, end }: { at: number; end: number },
  signal: AbortSignal,
): Promise<Uint8Array> {
  const before = at % BLOCK_BYTES;
  const bytes = Math.min(end - at, PIECE_BYTES - before);
  const blocks = Math.ceil((before + bytes) / BLOCK_BYTES);
  const skipped = Math.floor(at / BLOCK_BYTES);
  const script = `${find}
    [ "$r" != 0 ] || dd if="$f" bs=${BLOCK_BYTES} skip=${skipped} count=${blocks} || r=EIO`;
  const { output } = await perform(target, { script, maxBytes: blocks * BLOCK_BYTES }, signal);
  return output.subarray(before, before + bytes);
}

/**
 * The limits of one script: the number of files, the bytes of their paths and the bytes of their contents. A
 * single file may be larger.
 */
const MAX_FILES = 200;
const MAX_PATH_BYTES = 64 * 1024;
const MAX_BYTES = 4 * 1024 * 1024;
/** The number of bytes reserved for file names, and for files that grow in the meantime. */
const ROOM_BYTES = 512 * 1024;
const SLASH = 0x2f;

interface FileBytes {
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** Implements `FileTree.contents`. */
export async function* contentsOf(
  workspace: ScriptTarget,
  paths: readonly string[],
  maxBytes: number,
  signal: AbortSignal,
): AsyncGenerator<FileBytes> {
  for (const some of grouped(paths, (path) => Buffer.byteLength(path), MAX_PATH_BYTES)) {
    const sizes = await sizesOf(workspace, some, signal);
    const files = some.filter((path) => (sizes.get(path) ?? Number.POSITIVE_INFINITY) <= maxBytes);
    for (const group of grouped(files, (path) => sizes.get(path) ?? 0, MAX_BYTES))
      for await (const content of readGroup(workspace, group, maxBytes, signal))
        if (content.bytes.length <= maxBytes) yield content;
  }
}

/** Returns the sizes of the regular files. */
async function sizesOf(
  workspace: ScriptTarget,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<Map<string, number>> {
  const { workdir } = workspace;
  const words = paths.map((path) => quote(`./${path}`)).join(" ");
  const script = `fs_root ${quote(workdir)} && { fs_tell ${words}; [ $? -lt 126 ] || r=EIO; }`;
  const entries = entriesIn(await perform(workspace, { script, maxBytes: ROOM_BYTES }, signal), workdir);
  const files = entries.filter(({ type }) => type === "file");
  return new Map(files.map(({ path, size }) => [path.slice(workdir.length + 1), size]));
}

/** Splits a group in half if its files have grown too large for one script. */
async function* readGroup(
  workspace: ScriptTarget,
  paths: readonly string[],
  maxBytes: number,
  signal: AbortSignal,
): AsyncGenerator<FileBytes> {
  try {
    yield* await readAtOnce(workspace, paths, Math.max(maxBytes, MAX_BYTES), signal);
  } catch (error) {
    if (!(error instanceof AppError && error.code === "payload_too_large")) throw error;
    if (paths.length === 1) return;
    const middle = paths.length >> 1;
    yield* readGroup(workspace, paths.slice(0, middle), maxBytes, signal);
    yield* readGroup(workspace, paths.slice(middle), maxBytes, signal);
  }
}

/**
 * Reads files with one `tail`, which prints each file's name above its content. Random slashes and dots make the
 * printed names unguessable without changing the paths. Each further file gets one more slash.
 */
async function readAtOnce(
  workspace: ScriptTarget,
  paths: readonly string[],
  maxBytes: number,
  signal: AbortSignal,
): Promise<FileBytes[]> {
  const way = `./${[...randomBytes(64)].map((byte) => (byte < 128 ? "/" : "./")).join("")}.`;
  const words = paths.map((path, index) => `"$w"${quote(`${"/".repeat(index + 1)}${path}`)}`).join(" ");
  const script = `fs_root ${quote(workspace.workdir)} && {
    w=${way}
    echo
    tail -v -c +1 -- ${words}
    [ $? -lt 126 ] || r=EIO
  }`;
  const { output } = await perform(workspace, { script, maxBytes: maxBytes + ROOM_BYTES }, signal);
  return parted(output, Buffer.from(`\n==> ${way}`), paths);
}

function parted(output: Buffer, line: Buffer, paths: readonly string[]): FileBytes[] {
  const contents: FileBytes[] = [];
  for (let at = output.indexOf(line); at >= 0; ) {
    const slashes = at + line.length;
    let name = slashes;
    while (output[name] === SLASH) name++;
    const path = paths[name - slashes - 1];
    if (path === undefined) break;
    const start = name + Buffer.byteLength(`${path} <==\n`);
    at = output.indexOf(line, start);
    contents.push({ path, bytes: output.subarray(start, at < 0 ? undefined : at) });
  }
  return contents;
}

function* grouped(
  paths: readonly string[],
  weigh: (path: string) => number,
  limit: number,
): Generator<string[]> {
  let group: string[] = [];
  let weight = 0;
  for (const path of paths) {
    if (group.length === MAX_FILES || (group.length > 0 && weight + weigh(path) > limit)) {
      yield group;
      group = [];
      weight = 0;
    }
    group.push(path);
    weight += weigh(path);
  }
  if (group.length > 0) yield group;
}
