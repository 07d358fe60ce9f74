// Decides which runs may execute side by side after their processes died. Nothing shows which run killed a process, so each
// of its runs is suspect.

/**
 * The number of deaths that puts a run on trial. While a run is on trial, its process executes no other run
 * that has ever died. An innocent run on trial can therefore die again only because of a harmful run that had
 * not died before. From then on, the harmful run cannot execute alongside the innocent run.
 */
export const TRIAL_DEATHS = 2;

/** Returns the maximum number of deaths of a run that can execute alongside runs with these deaths. */
export function mostDeathsBeside(deaths: readonly number[]): number {
  if (deaths.length === 0) return Number.POSITIVE_INFINITY;
  return deaths.some((each) => each >= TRIAL_DEATHS) ? 0 : TRIAL_DEATHS - 1;
}
