// Reading a file: small ones at once, large ones piece by piece, without a lane while the reader is busy.
//
// A large file is held by a hard link in staging, so that the pieces are of one and the same file whatever takes
// its name meanwhile.

import type { ByteRange } from "../../core/backend.ts";
import { failure } from "../failures.ts";
import { quote } from "./runner.ts";
import { discard, perform, stagingName, type Target, wordsOf } from "./target.ts";

const BLOCK_BYTES = 64 * 1024;
const PIECE_BYTES = 8 * BLOCK_BYTES;

/** Up to the size that the file has when it is opened. */
export async function* readFile(
  target: Target,
  { offset = 0, length = Number.POSITIVE_INFINITY }: ByteRange,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  if (offset === 0) {
    const wanted = Math.min(length, PIECE_BYTES + 1);
    const script = `fs_file ${wordsOf(target)} && { head -c ${wanted} "./$n" || r=EIO; }`;
    const { output } = await perform(target, { script, maxBytes: wanted }, signal);
    if (wanted === length || output.length < wanted) {
      if (output.length > 0) yield output;
      return;
    }
  }
  yield* readPieces(target, offset, offset + length, signal);
}

async function* readPieces(target: Target, start: number, limit: number, signal: AbortSignal) {
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

interface Opened {
  readonly size: number;
  /** Leaves the file in "$f". */
  readonly find: string;
}

/** Where no link can be made, the file is looked up for every piece, and known by its inode. */
async function open(target: Target, name: string, signal: AbortSignal): Promise<Opened> {
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
  target: Target,
  { find }: Opened,
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
