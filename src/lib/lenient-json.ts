// Reads JSON that a model wrote almost right. Repairs only what has one meaning: raw control characters and unknown escapes in
// strings, a comma before a closing bracket, values written one behind another, and the marks around them.

/** Longer texts are read strictly only: repairing takes one tick of the event loop. */
const MAX_REPAIRED = 256 * 1024;

/** The values in `text`, read strictly where that works. Throws `SyntaxError`, about the text as it is, when one is not JSON. */
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

/** The longest mark, and room for white space. */
const MARK_LENGTH = 40;
const MARK = /(?:```|<\/\w{1,30}>|<\|\w{1,30}\|>)$/;

/** Without a fence of Markdown, and without the tags and tokens that end a call in a model's own format. */
function unwrapped(text: string): string {
  let bare = text.trim().replace(/^```(?:json)?/i, "");
  for (;;) {
    const mark = MARK.exec(bare.slice(-MARK_LENGTH));
    if (!mark) return bare;
    bare = bare.slice(0, -mark[0].length).trimEnd();
  }
}

/** The top-level values of `text`, repaired. An incomplete value comes last, as it is. */
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

/** The index behind the closing quote, or the text's length without one. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '"') return at + 1;
    if (text[at] === "\\") at++;
  }
  return text.length;
}

const STRUCTURE = /["[\]{}]/g;

/** The index behind one bracket, or behind the text up to the next bracket or string. */
function endOfPlain(text: string, start: number): number {
  STRUCTURE.lastIndex = start;
  const next = STRUCTURE.exec(text)?.index ?? text.length;
  return next === start ? start + 1 : next;
}

const ODD = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})|\\|\p{Cc}/gu;

/** A string literal whose control characters and unknown escapes stand for themselves. */
function repairedString(literal: string): string {
  return literal.replace(ODD, (found) => (found.length > 1 ? found : JSON.stringify(found).slice(1, -1)));
}
