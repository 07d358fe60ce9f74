// Arrays that are kept sorted: a place in one is found by halving.

/** How many come before the place: `isBefore` holds for the first ones, and for none after them. */
export function countBefore<T>(sorted: readonly T[], isBefore: (each: T) => boolean): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    // Between the two there is one.
    if (isBefore(sorted[middle] as T)) low = middle + 1;
    else high = middle;
  }
  return low;
}
