// Writes the JSON of long values in parts. No step handles more than one string or one value of 32 KiB.

/** A text in parts. Each part is created only when it is read. */
export interface LongText {
  readonly parts: Iterable<string>;
  /** The approximate number of characters. The source of the parts is kept until the last part has been read. */
  readonly length: number;
}

/** A smaller value is written at once. */
const WHOLE_CHARS = 32 * 1024;
/** The number of characters of a key or value in addition to its text. */
const ENTRY_CHARS = 8;

/** Returns true if writing `value` takes more than one step. */
export const isLongJson = (value: unknown) => charsOf(value, WHOLE_CHARS) > WHOLE_CHARS;

/** `value` must contain only JSON and must not change until it is written. */
export const longJson = (value: object): LongText => ({
  parts: jsonParts(value),
  length: charsOf(value),
});

/** Yields `JSON.stringify(value)` in parts. */
export function* jsonParts(value: unknown): Generator<string, void, void> {
  if (!isNest(value) || !isLongJson(value)) yield JSON.stringify(value);
  else if (Array.isArray(value)) yield* listParts(value);
  else yield* mapParts(value);
}

function* listParts(items: readonly unknown[]): Generator<string, void, void> {
  let before = "[";
  for (const item of items) {
    yield before;
    yield* jsonParts(item ?? null);
    before = ",";
  }
  yield "]";
}

function* mapParts(map: object): Generator<string, void, void> {
  let before = "{";
  for (const [name, member] of Object.entries(map)) {
    if (member === undefined) continue;
    yield `${before}${JSON.stringify(name)}:`;
    yield* jsonParts(member);
    before = ",";
  }
  yield before === "{" ? "{}" : "}";
}

/** Returns the approximate length of the JSON of `value`. Stops counting beyond `most` characters. */
export function charsOf(value: unknown, most = Number.POSITIVE_INFINITY): number {
  if (typeof value === "string") return value.length;
  if (!isNest(value)) return 0;
  let chars = 0;
  // The keys of a list are its indexes.
  for (const key in value) {
    chars += ENTRY_CHARS + key.length + charsOf(value[key], most - chars);
    if (chars > most) break;
  }
  return chars;
}

const isNest = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;
