// A long text of characters that take two places each. Of the two, one is cut inside a character wherever it is cut.

const LENGTH = 40_000;

export const LONG = ["🧵".repeat(LENGTH), `x${"🧵".repeat(LENGTH)}`] as const;
