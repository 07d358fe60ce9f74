// Finding the marks in what a shell prints: a control byte, the operation's own random word, a space, a few words,
// a line end. All the rest is output, passed on as it comes.

/** Text hardly ever ends in this byte, so its last character hardly ever has to wait for what comes next. */
const FIRST = 0x1e;
const LINE_END = 0x0a;
/** More than a mark ever says. */
const MAX_WORDS_LENGTH = 16_384;
const NOTHING = Buffer.alloc(0);

/** Prints a mark in a shell; `words` is what stands between the double quotes. */
export const printMark = (words: string) => `printf '\\036%s %s\\n' "$N" "${words}"`;

export interface MarkListener {
  /** `bytes` may be used until the call returns. */
  onOutput(bytes: Buffer): void;
  onMark(words: string): void;
}

/** Holds back what may be the beginning of a mark, and no more; copies nothing but a mark's words. */
export class MarkReader {
  readonly #mark: Buffer;
  readonly #listener: MarkListener;
  /** So many bytes of a mark have come. What follows shows whether it is one. */
  #held = 0;
  /** What stands after a mark, byte for byte, until its end has come. */
  #words: string | undefined;

  constructor(mark: string, listener: MarkListener) {
    this.#mark = Buffer.from(`\x1e${mark} `);
    this.#listener = listener;
  }

  /** Throws when a mark has no end: then it is no shell of ours that wrote it. */
  feed(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0) rest = this.#words === undefined ? this.#readOutput(rest) : this.#readWords(rest);
  }

  /** Returns what stands after the next mark. */
  #readOutput(bytes: Buffer): Buffer {
    if (this.#held > 0) return this.#readOn(bytes);
    const at = bytes.indexOf(this.#mark);
    if (at >= 0) {
      this.#pass(bytes.subarray(0, at));
      this.#words = "";
      return bytes.subarray(at + this.#mark.length);
    }
    this.#held = this.#begunIn(bytes);
    this.#pass(bytes.subarray(0, bytes.length - this.#held));
    return NOTHING;
  }

  /** Goes on with a mark that has begun in what came before. */
  #readOn(bytes: Buffer): Buffer {
    const held = this.#held;
    const next = bytes.subarray(0, this.#mark.length - held);
    const isMark = next.equals(this.#mark.subarray(held, held + next.length));
    this.#held = isMark ? held + next.length : 0;
    if (!isMark) {
      // A mark has its first byte nowhere else: no other one can have begun in what was held.
      this.#pass(this.#mark.subarray(0, held));
      return bytes;
    }
    if (this.#held === this.#mark.length) {
      this.#held = 0;
      this.#words = "";
    }
    return bytes.subarray(next.length);
  }

  /** How many of the last bytes may be the beginning of a mark. */
  #begunIn(bytes: Buffer): number {
    const at = bytes.lastIndexOf(FIRST);
    const length = bytes.length - at;
    if (at < 0 || length >= this.#mark.length) return 0;
    return bytes.subarray(at).equals(this.#mark.subarray(0, length)) ? length : 0;
  }

  #readWords(bytes: Buffer): Buffer {
    const end = bytes.indexOf(LINE_END);
    const words = `${this.#words}${bytes.toString("latin1", 0, end < 0 ? bytes.length : end)}`;
    if (words.length > MAX_WORDS_LENGTH) throw new Error("a mark without an end");
    if (end < 0) {
      this.#words = words;
      return NOTHING;
    }
    this.#words = undefined;
    this.#listener.onMark(Buffer.from(words, "latin1").toString());
    return bytes.subarray(end + 1);
  }

  #pass(bytes: Buffer): void {
    if (bytes.length > 0) this.#listener.onOutput(bytes);
  }
}
