// A token bucket that allows a burst at once and then a fixed rate per second.

/** Takes `amount` tokens. Returns the time in milliseconds to wait for the tokens, which is usually 0. */
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
 * Returns the limit for one server: a burst of 1,000 messages or 16 MiB, and then the same amount per second.
 * Skein slows down reading from a faster server, so this server waits instead of other users.
 */
export function messageAllowance(): (messages: number, bytes: number) => number {
  const take = allowance(1000, 1000);
  return (messages, bytes) => take(messages + bytes / BYTES_FOR_ONE);
}
