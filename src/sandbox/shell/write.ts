// Writes a file so that it appears either complete or not at all. The file is written to staging first and then
// moved to its place.
//
// A small file takes one script. A larger file is sent in pieces and does not occupy a session while its source
// sends nothing. Each piece is sent only once, because after a loss it is unknown how much of it arrived.

import { isUtf8 } from "node:buffer";
import { untilAborted } from "../../lib/async.ts";
import { failure, lostWhile, quoted } from "../paths.ts";
import { discard, perform, type ScriptTarget, stagingName, succeeded, wordsOf } from "./prelude.ts";
import { quote, SandboxLostError, type ScriptReply, type ShellScript } from "./script.ts";

const PIECE_BYTES = 1024 * 1024;
/**
 * The maximum size of text that becomes part of the script, which is the fastest way to send it. Other data is sent as
 * input.
 */
const TEXT_BYTES = 32 * 1024;
/** The maximum number of attempts for data in memory. */
const TRIES = 3;

/** Writes a file. If the file exists and is executable, it stays executable. Returns the number of bytes written. */
export async function writeFile(
  target: ScriptTarget,
  data: Uint8Array | AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<number> {
  if (target.relative === "") throw failure("EISDIR", target.path);
  if (!(data instanceof Uint8Array)) return writeStream(target, data, signal);
  if (data.length <= PIECE_BYTES) return writeAtOnce(target, data, signal);
  for (let tried = 1; ; tried++) {
    try {
      return await writePieces(target, piecesOf(data), signal);
    } catch (error) {
      if (!(error instanceof SandboxLostError)) throw error;
      if (tried === TRIES) throw lostWhile(`${quoted(target.path)} was written`, error);
    }
  }
}

/** Writes a file from a stream. Refuses an invalid path before reading from `source`. */
async function writeStream(
  target: ScriptTarget,
  source: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<number> {
  await perform(target, { script: `fs_target ${wordsOf(target)}` }, signal);
  const pieces = gathered(untilAborted(source, signal));
  try {
    const { value: first = new Uint8Array() } = await pieces.next();
    if (first.length < PIECE_BYTES) return await writeAtOnce(target, first, signal);
    return await writePieces(target, followed(first, pieces), signal);
  } catch (error) {
    throw error instanceof SandboxLostError ? lostWhile(`${quoted(target.path)} was written`, error) : error;
  } finally {
    await pieces.return();
  }
}

async function writeAtOnce(target: ScriptTarget, data: Uint8Array, signal: AbortSignal): Promise<number> {
  const { fill, input } = filling(data);
  // Each run uses a different name, because an earlier run that was lost may still be writing.
  const name = stagingName("$N");
  const script = `fs_target ${wordsOf(target)} && fs_stage && T=$S/${name} && ${fill} && fs_put || fs_drop`;
  await perform(target, { script, ...input }, signal);
  return data.length;
}

function filling(data: Uint8Array): { fill: string; input?: Pick<ShellScript, "input"> } {
  const isText = data.length <= TEXT_BYTES && !data.includes(0) && isUtf8(data);
  if (!isText) return { fill: `fs_receive ${data.length}`, input: { input: data } };
  return { fill: `{ printf %s ${quote(Buffer.from(data).toString())} >"$T" || fs_full ${data.length}; }` };
}

/** Writes the pieces. May also throw `SandboxLostError`, in which case nothing has changed. */
async function writePieces(
  target: ScriptTarget,
  pieces: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<number> {
  const name = stagingName();
  const place = `fs_target ${wordsOf(target)} && T=$S/${name}`;
  const staged = `fs_root ${quote(target.workdir)} && T=$S/${name} && { [ -f "$T" ] || r=GONE; } && [ "$r" = 0 ]`;
  let bytes = 0;
  try {
    await perform(target, { script: `${place} && fs_stage && { printf '' >"$T" || fs_full 0; }` }, signal);
    for await (const input of pieces) {
      const script = `${staged} && fs_receive ${input.length}`;
      arrived(await target.runner.runOnce({ script, input }, signal), target);
      bytes += input.length;
    }
    const check = { script: `${staged} && r="0 $(stat -c '%s %i' "$T")"` };
    const { fields } = arrived(await target.runner.run(check, signal), target);
    if (fields[1] !== String(bytes))
      throw new SandboxLostError("the staged file differs from what was written");
    // If this runs a second time, the moved file is recognized by its inode.
    const isThere = `[ "$(stat -c %i "./$n")" = ${quote(fields[2] ?? "")} ]`;
    const move = { script: `${place} && { if [ -e "$T" ]; then fs_put; else ${isThere} || r=GONE; fi; }` };
    arrived(await target.runner.run(move, signal), target);
    return bytes;
  } catch (error) {
    await discard(target, name);
    throw error;
  }
}

/** Regroups data into pieces of equal size. The last piece may be smaller. */
async function* gathered(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  let parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of source) {
    for (let at = 0; at < chunk.length; ) {
      const part = chunk.subarray(at, at + PIECE_BYTES - size);
      parts.push(part);
      size += part.length;
      at += part.length;
      if (size < PIECE_BYTES) continue;
      yield Buffer.concat(parts);
      parts = [];
      size = 0;
    }
  }
  if (size > 0) yield Buffer.concat(parts);
}

async function* piecesOf(data: Uint8Array) {
  for (let at = 0; at < data.length; at += PIECE_BYTES) yield data.subarray(at, at + PIECE_BYTES);
}

async function* followed(first: Uint8Array, rest: AsyncIterable<Uint8Array>) {
  yield first;
  yield* rest;
}

/** Checks a reply. Throws if the staged data was lost with its sandbox. */
function arrived(reply: ScriptReply, { path }: ScriptTarget): ScriptReply {
  if (reply.fields[0] === "GONE") throw new SandboxLostError("the staged file is missing");
  return succeeded(reply, path);
}
