// The seed of tests that draw: each of them has a fixed one, so that a change is judged by the same cases as the one before.

/** Whether there is a night for it: what draws then draws more. */
export const isNightly = process.env.TESTS === "nightly";

/** `fixed`, unless TEST_SEED is set: `npm run test:nightly` draws one and prints it. */
export const seedOr = (fixed: number): number => Number(process.env.TEST_SEED ?? fixed);
