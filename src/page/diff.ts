// Compares two texts line by line with the Myers algorithm, which finds the fewest removed and added lines.

export interface DiffLine {
  readonly kind: "same" | "removed" | "added";
  /** Includes the line ending, if any. */
  readonly text: string;
  /** The line number in the old text, starting at 1. Undefined for an added line. */
  readonly before?: number;
  readonly after?: number;
}

/**
 * The maximum number of changed lines. Beyond it, the whole text is shown as replaced, because memory use grows with
 * the square of this number.
 */
const MAX_CHANGES = 1000;

/** Returns all lines of both texts, in order. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [old, young] = [linesOf(before), linesOf(after)];
  const shorter = Math.min(old.length, young.length);
  let start = 0;
  while (start < shorter && old[start] === young[start]) start++;
  let end = 0;
  while (end < shorter - start && old.at(-1 - end) === young.at(-1 - end)) end++;
  const changed = script(old.slice(start, old.length - end), young.slice(start, young.length - end));
  const same = (lines: readonly string[]) => lines.map((text) => ({ kind: "same", text }) as const);
  return numbered([...same(old.slice(0, start)), ...changed, ...same(old.slice(old.length - end))]);
}

/** Returns the changes with `around` unchanged lines before and after each. Omits all other lines. */
export function hunksOf(lines: readonly DiffLine[], around = 3): DiffLine[][] {
  const hunks: DiffLine[][] = [];
  let reach = 0;
  for (const [index, line] of lines.entries()) {
    if (line.kind === "same") continue;
    const from = Math.max(reach, index - around);
    if (hunks.length === 0 || from > reach) hunks.push([]);
    const until = Math.min(lines.length, index + around + 1);
    hunks.at(-1)?.push(...lines.slice(from, until));
    reach = until;
  }
  return hunks;
}

export function countsOf(lines: readonly DiffLine[]): { added: number; removed: number } {
  const count = (kind: DiffLine["kind"]) => lines.filter((line) => line.kind === kind).length;
  return { added: count("added"), removed: count("removed") };
}

const linesOf = (text: string): string[] => (text === "" ? [] : text.split(/(?<=\n)/));

type DiffStep = Pick<DiffLine, "kind" | "text">;

function numbered(steps: readonly DiffStep[]): DiffLine[] {
  let [before, after] = [0, 0];
  return steps.map((step) => ({
    ...step,
    ...(step.kind === "added" ? {} : { before: ++before }),
    ...(step.kind === "removed" ? {} : { after: ++after }),
  }));
}

/** Returns the shortest edit script from `old` to `young`. */
function script(old: readonly string[], young: readonly string[]): DiffStep[] {
  const reached = furthest(old, young);
  if (!reached)
    return [
      ...old.map((text) => ({ kind: "removed", text }) as const),
      ...young.map((text) => ({ kind: "added", text }) as const),
    ];
  const steps: DiffStep[] = [];
  let [x, y] = [old.length, young.length];
  for (let changes = reached.length - 1; changes >= 0; changes--) {
    const from = cameFrom(reached[changes - 1], x - y, changes);
    for (; x > from.x && y > from.y; x--, y--) steps.push({ kind: "same", text: old[x - 1] ?? "" });
    if (changes === 0) break;
    if (from.isAdded) steps.push({ kind: "added", text: young[from.y] ?? "" });
    else steps.push({ kind: "removed", text: old[from.x] ?? "" });
    [x, y] = [from.x, from.y];
  }
  return steps.reverse();
}

/**
 * Returns, for a certain number of changes, how many old lines can be passed on a diagonal. A diagonal is the number of
 * old lines passed minus the number of new lines passed.
 */
type LinesPassed = (diagonal: number) => number;

/**
 * Returns this for 0, 1, 2 and more changes, up to the number that reaches the end. Returns undefined if there are too
 * many changes.
 */
function furthest(old: readonly string[], young: readonly string[]): LinesPassed[] | undefined {
  const all: LinesPassed[] = [];
  for (let changes = 0; changes <= MAX_CHANGES; changes++) {
    const row = new Int32Array(2 * changes + 1);
    all.push((diagonal) => row[diagonal + changes] ?? 0);
    for (let diagonal = -changes; diagonal <= changes; diagonal += 2) {
      const from = cameFrom(all[changes - 1], diagonal, changes);
      let x = from.isAdded ? from.x : from.x + 1;
      while (x < old.length && x - diagonal < young.length && old[x] === young[x - diagonal]) x++;
      row[diagonal + changes] = x;
      if (x >= old.length && x - diagonal >= young.length) return all;
    }
  }
  return undefined;
}

/**
 * Returns the position from which a line is removed or added. One change fewer was enough to reach it. Before the first
 * change, the position is one line above the start.
 */
function cameFrom(last: LinesPassed = () => 0, diagonal: number, changes: number) {
  const isAdded = diagonal === -changes || (diagonal !== changes && last(diagonal - 1) < last(diagonal + 1));
  const x = last(isAdded ? diagonal + 1 : diagonal - 1);
  return { isAdded, x, y: x - diagonal - (isAdded ? 1 : -1) };
}
