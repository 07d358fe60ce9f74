// Reads JSON in which a model made small mistakes. Repairs only unambiguous mistakes: raw control characters and
// unknown escapes in strings, trailing commas, consecutive values, and surrounding markup.

/** Longer texts are only parsed strictly, because a repair occupies one tick of the event loop. */
const MAX_REPAIRED = 256 * 1024;

/**
 * Returns the values in `text`, parsed strictly if possible. Throws the `SyntaxError` of the original text if a value
 * is not JSON.
 */
export function readJsonValues(text: string): unknown[] {
  try {
    return [JSON.parse(text)];
  } catch (error) {
    if (text.length > MAX_REPAIRED) throw error;
    try {
      return repairedValues(unwrapped(text)).map((value): unknown => JSON.parse(value));
    } catch {
      throw error;
    }
  }
}

/** The length of the longest mark, plus room for whitespace. */
const MARK_LENGTH = 40;
const MARK = /(?:```|<\/\w{1,30}>|<\|\w{1,30}\|>)$/;

/** Removes Markdown fences, and the tags and tokens that end a call in a model's own format. */
function unwrapped(text: string): string {
  let bare = text.trim().replace(/^```(?:json)?/i, "");
  for (;;) {
    const mark = MARK.exec(bare.slice(-MARK_LENGTH));
    if (!mark) return bare;
    bare = bare.slice(0, -mark[0].length).trimEnd();
  }
}

/** Returns the repaired top-level values of `text`. An incomplete value comes last, unchanged. */
function repairedValues(text: string): string[] {
  const values: string[] = [];
  let [value, depth, at] = ["", 0, 0];
  const close = () => {
    if (value.trim() !== "") values.push(value);
    value = "";
  };
  while (at < text.length) {
    const end = text[at] === '"' ? endOfString(text, at) : endOfPlain(text, at);
    const piece = text.slice(at, end);
    at = end;
    if (depth === 0 && /^["[{]/.test(piece)) close();
    if (piece === "{" || piece === "[") depth++;
    if (piece === "}" || piece === "]") depth--;
    const isClosed = text[end] === "}" || text[end] === "]";
    value += piece.startsWith('"') ? repairedString(piece) : isClosed ? piece.replace(/,\s*$/, "") : piece;
    if (depth === 0 && /^["\]}]/.test(piece)) close();
  }
  close();
  return values;
}

/** Returns the index after the closing quote, or the text's length if there is none. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '"') return at + 1;
    if (text[at] === "\\") at++;
  }
  return text.length;
}

const STRUCTURE = /["[\]{}]/g;

/** Returns the index after one bracket, or after the text up to the next bracket or string. */
function endOfPlain(text: string, start: number): number {
  STRUCTURE.lastIndex = start;
  const next = STRUCTURE.exec(text)?.index ?? text.length;
  return next === start ? start + 1 : next;
}

const ODD = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})|\\|\p{Cc}/gu;

/** Escapes raw control characters and unknown escapes in a string literal, so they represent themselves. */
function repairedString(literal: string): string {
  return literal.replace(ODD, (found) => (found.length > 1 ? found : JSON.stringify(found).slice(1, -1)));
}
