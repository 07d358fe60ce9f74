// Suggests a similar word: "Did you mean …?"

const MAX_LENGTH = 64;

/** Returns the closest candidate, or undefined if none is close. Words of more than 64 characters match nothing. */
export function closestMatch(word: string, candidates: Iterable<string>): string | undefined {
  if (word === "" || word.length > MAX_LENGTH) return undefined;
  const meant = word.toLowerCase();
  let best: string | undefined;
  let least = Math.max(1, Math.floor(word.length / 3)) + 0.5;
  for (const candidate of candidates) {
    if (candidate.length > MAX_LENGTH) continue;
    const distance = farness(meant, candidate.toLowerCase());
    if (distance >= least) continue;
    best = candidate;
    least = distance;
  }
  return best;
}

/** Returns the end of a message, or an empty text if no candidate is close. */
export function didYouMean(word: unknown, candidates: Iterable<string>): string {
  const found = typeof word === "string" ? closestMatch(word, candidates) : undefined;
  return found === undefined ? "" : `; did you mean \`${found}\`?`;
}

/** Counts as one edit if one word contains the other, such as `prompt` in `system_prompt`. */
function farness(a: string, b: string): number {
  const isPart = Math.min(a.length, b.length) >= 4 && (a.includes(b) || b.includes(a));
  return isPart ? Math.min(1, distance(a, b)) : distance(a, b);
}

/**
 * Returns the Damerau-Levenshtein distance, which counts insertions, deletions, replacements and swaps of neighbors.
 */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      const steps = [
        at(above, column) + 1,
        at(current, column - 1) + 1,
        at(above, column - 1) + (same ? 0 : 1),
      ];
      if (row > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1])
        steps.push(at(before, column - 2) + 1);
      current.push(Math.min(...steps));
    }
    before = above;
    above = current;
  }
  return at(above, b.length);
}

const at = (row: readonly number[], column: number) => row[column] ?? Number.POSITIVE_INFINITY;
