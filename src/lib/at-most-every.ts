// Reports what happens often, without a line for each time.

/**
 * A function that calls `tell` with what it was given and the number of calls since the last time. At most one call of `tell` in
 * `ms`; the first of a series comes at once.
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
