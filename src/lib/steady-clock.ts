// A clock that never runs backwards: while another one does, as when it is set, it stands still.

/** Follows `now`, in milliseconds; ahead of it by all that it was set back since. */
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
