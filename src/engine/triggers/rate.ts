// How often a trigger may be called.

const MINUTE = 60_000;

/**
 * Counts a call, and returns how long the caller has to wait, in ms: 0 when the call is within the rate. As many calls as are allowed in
 * a minute may come at once; after that, they become free one by one.
 */
export function requestRate(perMinute: number, now: () => number = () => performance.now()): () => number {
  const each = MINUTE / perMinute;
  let left = perMinute;
  let since = now();
  return () => {
    const time = now();
    left = Math.min(perMinute, left + (time - since) / each);
    since = time;
    if (left < 1) return Math.ceil((1 - left) * each);
    left -= 1;
    return 0;
  };
}
