// A token bucket: a burst at once, then a rate per second.

/** Takes `amount` tokens. Returns the milliseconds to wait for them; usually 0. */
export type Allowance = (amount: number) => number;

export function allowance(atOnce: number, perSecond: number): Allowance {
  let left = atOnce;
  let since = performance.now();
  return (amount) => {
    const now = performance.now();
    left = Math.min(atOnce, left + ((now - since) / 1000) * perSecond) - amount;
    since = now;
    return left >= 0 ? 0 : (-left / perSecond) * 1000;
  };
}

const BYTES_FOR_ONE = 16 * 1024;

/**
 * The limit for one server: 1,000 messages or 16 MiB at once and per second. A faster server is read more slowly, so that it
 * waits and not the other users.
 */
export function messageAllowance(): (messages: number, bytes: number) => number {
  const take = allowance(1000, 1000);
  return (messages, bytes) => take(messages + bytes / BYTES_FOR_ONE);
}
