// Text that comes in pieces, line by line.

/** Of a longer line only the beginning is kept. */
const MAX_LENGTH = 4096;

/** Returns what takes the pieces. What stands after the last line end is never handed on. */
export function linesOf(onLine: (line: string) => void): (bytes: Buffer) => void {
  let begun = "";
  return (bytes) => {
    const [first = "", ...others] = bytes.toString("latin1").split("\n");
    begun = (begun + first).slice(0, MAX_LENGTH);
    for (const other of others) {
      onLine(begun);
      begun = other.slice(0, MAX_LENGTH);
    }
  };
}
