// Handles a store's clock that was set back, for example by NTP or on a restored machine. Times that were written
// earlier are then in the future.

/**
 * Returns the latest time at which a lease acquired by `now` ends, or at which a thread with runs must be checked. A
 * later time was written before the clock was set back, so the wait restarts now. The allowance is two leases, because
 * the lease may have been longer.
 */
export const latestLeaseEnd = (now: number, leaseMs: number): number => now + 2 * leaseMs;
