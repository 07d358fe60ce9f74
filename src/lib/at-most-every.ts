// Limits how often a frequent occurrence is reported.

/**
 * Returns a function that calls `tell` with its argument and the number of calls since the previous `tell`. `tell` runs
 * at most once per `ms` milliseconds; the first call of a series is reported at once.
 */
export function atMostEvery<T>(ms: number, tell: (what: T, count: number) => void): (what: T) => void {
  let toldAt = Number.NEGATIVE_INFINITY;
  let count = 0;
  return (what) => {
    count++;
    const now = performance.now();
    if (now - toldAt < ms) return;
    toldAt = now;
    tell(what, count);
    count = 0;
  };
}
