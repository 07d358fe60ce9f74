// A text that grows, cut into parts of some lines: those that are full stay the same, so that a browser lays out only the last.

const LINES = 200;

/** To be called with a text as it grows; a text that is no longer the same begins again. */
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

/** Undefined while it has fewer lines. */
function endOfPart(text: string, from: number): number | undefined {
  let end = from;
  for (let line = 0; line < LINES; line++) {
    end = text.indexOf("\n", end) + 1;
    if (end === 0) return undefined;
  }
  return end;
}
