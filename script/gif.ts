// Creates an animated GIF from the filmed pictures. All frames share one palette. Each frame after the first contains
// only its changes.

export interface GifFrame {
  /** Four bytes per point. */
  readonly points: Uint8Array;
  readonly ms: number;
}

const COLORS = 255;
/** The last palette entry: the point is unchanged since the previous frame. */
const SAME = COLORS;
const CLEAR = 256;
const END = 257;
const MAX_CODES = 4096;

/** Returns a GIF that repeats forever. All frames have this size. */
export function gifOf(frames: readonly GifFrame[], width: number, height: number): Buffer {
  const { palette, indexOf } = paletteOf(frames.filter((_, at) => at % Math.ceil(frames.length / 8) === 0));
  const parts: Buffer[] = [
    Buffer.from("GIF89a"),
    Buffer.from([...word(width), ...word(height), 0b1111_0111, 0, 0]),
    palette,
    Buffer.from([0x21, 0xff, 11, ...Buffer.from("NETSCAPE2.0"), 3, 1, 0, 0, 0]),
  ];
  let before = new Uint8Array(width * height).fill(SAME);
  for (const { points, ms } of frames) {
    const indexes = new Uint8Array(width * height);
    for (let at = 0; at < indexes.length; at++) indexes[at] = indexOf[bucketAt(points, at)] ?? 0;
    const changed = indexes.map((index, at) => (index === before[at] ? SAME : index));
    parts.push(
      Buffer.from([0x21, 0xf9, 4, 0b101, ...word(Math.round(ms / 10)), SAME, 0]),
      Buffer.from([0x2c, 0, 0, 0, 0, ...word(width), ...word(height), 0, 8]),
      inBlocks(compressed(changed)),
    );
    before = indexes;
  }
  return Buffer.concat([...parts, Buffer.from([0x3b])]);
}

const word = (value: number) => [value & 255, value >> 8];

/** Similar colors share one of 32,768 buckets. */
const bucketAt = (points: Uint8Array, at: number) =>
  (((points[at * 4] ?? 0) >> 3) << 10) |
  (((points[at * 4 + 1] ?? 0) >> 3) << 5) |
  ((points[at * 4 + 2] ?? 0) >> 3);

/** The most frequent colors of these frames and, for each bucket, the index of the nearest one. */
function paletteOf(frames: readonly GifFrame[]) {
  const buckets = new Map<number, { count: number; sums: [number, number, number] }>();
  for (const { points } of frames)
    for (let at = 0; at < points.length / 4; at++) {
      const key = bucketAt(points, at);
      const bucket = buckets.get(key) ?? { count: 0, sums: [0, 0, 0] };
      buckets.set(key, bucket);
      bucket.count++;
      for (const channel of [0, 1, 2] as const) bucket.sums[channel] += points[at * 4 + channel] ?? 0;
    }
  const colors = [...buckets.values()]
    .toSorted((a, b) => b.count - a.count)
    .slice(0, COLORS)
    .map(({ count, sums }) => sums.map((sum) => Math.round(sum / count)));
  const indexOf = Uint8Array.from({ length: 32_768 }, (_, key) => {
    const color = [key >> 10, (key >> 5) & 31, key & 31].map((part) => part * 8 + 4);
    const distances = colors.map((each) =>
      color.reduce((sum, part, at) => sum + (part - (each[at] ?? 0)) ** 2, 0),
    );
    return distances.indexOf(Math.min(...distances));
  });
  const palette = Buffer.alloc(256 * 3);
  palette.set(colors.flat());
  return { palette, indexOf };
}

/** Compresses indexes with GIF's variant of LZW. */
function compressed(indexes: Uint8Array): number[] {
  const bytes: number[] = [];
  const codes = new Uint16Array(MAX_CODES * 256);
  let size = 9;
  let next = END + 1;
  let bits = 0;
  let waiting = 0;
  const emit = (code: number) => {
    bits |= code << waiting;
    for (waiting += size; waiting >= 8; waiting -= 8) {
      bytes.push(bits & 255);
      bits >>>= 8;
    }
    if (next === 1 << size && size < 12) size++;
  };
  emit(CLEAR);
  let prefix = indexes[0] ?? 0;
  for (const index of indexes.subarray(1)) {
    const key = prefix * 256 + index;
    const known = codes[key];
    if (known) {
      prefix = known;
      continue;
    }
    emit(prefix);
    prefix = index;
    if (next < MAX_CODES) codes[key] = next++;
    else {
      emit(CLEAR);
      codes.fill(0);
      size = 9;
      next = END + 1;
    }
  }
  emit(prefix);
  emit(END);
  bytes.push(bits & 255);
  return bytes;
}

/** Splits the bytes into blocks of at most 255 bytes, each preceded by its length. An empty block ends them. */
function inBlocks(bytes: readonly number[]): Buffer {
  const blocks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += 255) {
    const block = bytes.slice(at, at + 255);
    blocks.push(Buffer.from([block.length, ...block]));
  }
  return Buffer.concat([...blocks, Buffer.from([0])]);
}
