// Frames between the server and the file helper (described in helper.ts), and the limits of both ends. Incoming frames
// are untrusted: lengths are checked before memory is allocated.

/** The size of an id and a letter. */
const HEAD_BYTES = 5;
const LENGTH_BYTES = 4;

export type FrameField = string | Uint8Array;

export interface HelperFrame {
  readonly id: number;
  readonly letter: string;
  /** Slices of a buffer that belongs to this frame alone. */
  readonly fields: readonly Buffer[];
  /** The size of the whole frame on the wire, in bytes. */
  readonly bytes: number;
}

export function encodeFrame(id: number, letter: string, fields: readonly FrameField[]): Buffer {
  const sizes = fields.map((field) => (typeof field === "string" ? Buffer.byteLength(field) : field.length));
  const rest = sizes.reduce((sum, size) => sum + LENGTH_BYTES + size, HEAD_BYTES);
  const frame = Buffer.allocUnsafe(LENGTH_BYTES + rest);
  let at = frame.writeUInt32BE(rest);
  at = frame.writeUInt32BE(id, at);
  at += frame.write(letter, at, "latin1");
  fields.forEach((field, index) => {
    at = frame.writeUInt32BE(sizes[index] ?? 0, at);
    if (typeof field === "string") at += frame.write(field, at);
    else {
      frame.set(field, at);
      at += field.length;
    }
  });
  return frame;
}

/** Returns a function that takes bytes and calls `onFrame` for each complete frame. It throws for a malformed frame. */
export function frameReader(onFrame: (frame: HelperFrame) => void): (bytes: Buffer) => void {
  const length = Buffer.alloc(LENGTH_BYTES);
  let rest: Buffer | undefined;
  let held = 0;

  return (bytes) => {
    for (let at = 0; at < bytes.length; ) {
      const target = rest ?? length;
      const copied = bytes.copy(target, held, at);
      at += copied;
      held += copied;
      if (held < target.length) return;
      held = 0;
      if (rest) {
        onFrame(decode(rest));
        rest = undefined;
      } else rest = Buffer.allocUnsafe(checked(length.readUInt32BE()));
    }
  };
}

function checked(size: number): number {
  if (size < HEAD_BYTES || size > MAX_FRAME_BYTES)
    throw new Error(`it sent a frame of ${size} bytes, which is not a valid size`);
  return size;
}

function decode(rest: Buffer): HelperFrame {
  const fields: Buffer[] = [];
  for (let at = HEAD_BYTES; at < rest.length; ) {
    const start = at + LENGTH_BYTES;
    if (start > rest.length) throw new Error("it sent a frame that ends within the length of a field");
    at = start + rest.readUInt32BE(at);
    if (at > rest.length) throw new Error("it sent a field that is longer than its frame");
    fields.push(rest.subarray(start, at));
  }
  return {
    id: rest.readUInt32BE(),
    letter: rest.toString("latin1", LENGTH_BYTES, HEAD_BYTES),
    fields,
    bytes: LENGTH_BYTES + rest.length,
  };
}

/** The fields of the helper's first frame, `h`. */
export const GREETING: readonly string[] = ["skein-files", "1"];

/** The maximum amount of file content in one frame, and in one request. */
export const CHUNK_BYTES = 128 * 1024;
/** The size of a chunk plus room for paths, or for 200 names. */
export const MAX_FRAME_BYTES = CHUNK_BYTES + 128 * 1024;
/** The maximum number of entries in a listing, in disk order. */
export const MAX_LISTED = 10_000;
/** The maximum number of entries that a search visits, and the maximum size of their paths in bytes. */
export const MAX_WALKED = 50_000;
export const MAX_WALKED_BYTES = 8 * 1024 * 1024;
/**
 * The maximum number of files that are open for reading or writing. Opening another file closes the least recently used
 * one.
 */
export const MAX_OPEN = 64;
