// Which runs whose processes died are executed beside each other. No process can say which of its runs killed it, so each is suspect.

/**
 * A run whose process died this often is on trial: no other run that ever died works beside it in its process. So a death that a
 * trial adds to an innocent run takes a poisonous one that had not died before, and is then kept from it.
 */
export const TRIAL_DEATHS = 2;

/** How often a run may have died to be executed beside runs that died so often. */
export function mostDeathsBeside(deaths: readonly number[]): number {
  if (deaths.length === 0) return Number.POSITIVE_INFINITY;
  return deaths.some((each) => each >= TRIAL_DEATHS) ? 0 : TRIAL_DEATHS - 1;
}
