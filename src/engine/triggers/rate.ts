// Limits how often a trigger can be called.

const MINUTE = 60_000;

/**
 * Returns a function that counts a call and returns how many milliseconds the caller has to wait, or 0 if the call is
 * within the rate. A whole minute's calls can arrive at once. After that, calls become available one by one.
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
