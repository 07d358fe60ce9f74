// The seed of tests that draw: each of them has a fixed one, so that a change is judged by the same cases as the one before.

/** Whether `npm run test:nightly` runs these tests, which then try every case and draw more of them. */
export const isNightly = process.env.TESTS === "nightly";

/** Returns all cases at night, and otherwise every `nth` of them, beginning with the first. The choice is the same in every run. */
export const sampled = <T>(cases: readonly T[], nth: number): readonly T[] =>
  isNightly ? cases : cases.filter((_, index) => index % nth === 0);

/** `fixed`, unless TEST_SEED is set: `npm run test:nightly` draws one and prints it. */
export const seedOr = (fixed: number): number => Number(process.env.TEST_SEED ?? fixed);
