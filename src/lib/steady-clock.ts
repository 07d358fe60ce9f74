// A clock that never runs backwards. It pauses while the underlying clock is behind, for example after it was set back.

/** Returns a clock that follows `now`, in milliseconds, plus the total by which `now` was set back. */
export function steadyClock(now: () => number): () => number {
  let last = now();
  let ahead = 0;
  return () => {
    const time = now();
    ahead += Math.max(0, last - time);
    last = time;
    return time + ahead;
  };
}
