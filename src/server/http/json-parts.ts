// JSON of long values, written bit by bit: no step takes longer than a text or a value of 32 KiB.

/** A text in parts that are made when they are taken. */
export interface LongText {
  readonly parts: Iterable<string>;
  /** About as many characters. What the parts are made of is kept until the last one is taken. */
  readonly length: number;
}

/** A smaller value is written at once. */
const WHOLE_CHARS = 32 * 1024;
/** Of a key or value beside its text. */
const ENTRY_CHARS = 8;

/** Whether writing `value` is work for more than one step. */
export const isLongJson = (value: unknown) => charsOf(value, WHOLE_CHARS) > WHOLE_CHARS;

/** `value` holds nothing but JSON, and must not change until it is written. */
export const longJson = (value: object): LongText => ({
  parts: jsonParts(value),
  length: charsOf(value),
});

/** `JSON.stringify(value)` in parts. */
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

/** About how long the JSON of `value` is. Looks no further once it is longer than `most`. */
export function charsOf(value: unknown, most = Number.POSITIVE_INFINITY): number {
  if (typeof value === "string") return value.length;
  if (!isNest(value)) return 0;
  let chars = 0;
  // Of a list the keys are the places.
  for (const key in value) {
    chars += ENTRY_CHARS + key.length + charsOf(value[key], most - chars);
    if (chars > most) break;
  }
  return chars;
}

const isNest = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;
