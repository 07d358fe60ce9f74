// How fast somebody may go: so much at once, and so much a second after that.

/** Takes `amount` of it. Returns the milliseconds to wait until that was not too much; mostly 0. */
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
 * What one server may make us read: a thousand messages or 16 MiB at once and in every second after that. One
 * that floods us is read slowly, so that it waits and not everybody else.
 */
export function messageAllowance(): (messages: number, bytes: number) => number {
  const take = allowance(1000, 1000);
  return (messages, bytes) => take(messages + bytes / BYTES_FOR_ONE);
}
