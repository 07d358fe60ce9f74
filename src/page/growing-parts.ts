// Splits a growing text into parts with a fixed number of lines. Full parts do not change, so the browser lays out only
// the last one.

const LINES = 200;

/**
 * Returns a function to call with a text each time it has grown. A text that does not continue the previous one starts
 * over.
 */
export function growingParts(): (text: string) => readonly string[] {
  let full: string[] = [];
  let length = 0;
  let before = "";
  return (text) => {
    if (!text.startsWith(before)) [full, length] = [[], 0];
    before = text;
    for (let end = endOfPart(text, length); end !== undefined; end = endOfPart(text, length)) {
      full = [...full, text.slice(length, end)];
      length = end;
    }
    return length < text.length ? [...full, text.slice(length)] : full;
  };
}

/** Returns undefined if the text has fewer lines. */
function endOfPart(text: string, from: number): number | undefined {
  let end = from;
  for (let line = 0; line < LINES; line++) {
    end = text.indexOf("\n", end) + 1;
    if (end === 0) return undefined;
  }
  return end;
}
