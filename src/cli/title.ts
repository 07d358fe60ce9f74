// The title of a thread that begins with a message.

const LONGEST = 80;

/** The first line, cut; `undefined` when there is none. */
export function titleFrom(text: string): string | undefined {
  const [line = ""] = text.trim().split("\n", 1);
  if (line.length <= LONGEST) return line || undefined;
  // No character is cut in two.
  return `${line.slice(0, LONGEST).replace(/[\ud800-\udbff]$/, "")}…`;
}
