// Decides which runs may execute side by side after their processes died. A process cannot know which of its runs killed it, so
// each is suspect.

/**
 * Number of deaths that put a run on trial: in its process, no other run that ever died executes at the same time.
 * An innocent run on trial can therefore die again only because of a harmful run that had not died before,
 * which is then kept away from it.
 */
export const TRIAL_DEATHS = 2;

/** Maximum number of deaths of a run that can execute alongside runs with these deaths. */
export function mostDeathsBeside(deaths: readonly number[]): number {
  if (deaths.length === 0) return Number.POSITIVE_INFINITY;
  return deaths.some((each) => each >= TRIAL_DEATHS) ? 0 : TRIAL_DEATHS - 1;
}
