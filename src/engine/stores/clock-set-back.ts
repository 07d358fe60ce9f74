// A store's clock that was set back, as by NTP or with a restored machine: times that were written before lie in the future.

/**
 * The latest time at which a lease that was given by `now` ends, or at which a thread with runs must be looked at. A later time was
 * written before the clock was set back, and begins again now. Twice a lease: it may have been given with a longer one.
 */
export const latestLeaseEnd = (now: number, leaseMs: number): number => now + 2 * leaseMs;
