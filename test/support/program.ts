// The program that tests start: `skein`.

import { fileURLToPath } from "node:url";

export const isBuilt = Boolean(process.env.TESTS_BUILT);

/**
 * `npm test` builds it first and says so: what is compiled starts in half the time. Single files, started by vitest itself, run what
 * is in src/ now.
 */
export const MAIN = fileURLToPath(
  new URL(isBuilt ? "../../dist/main.js" : "../../src/main.ts", import.meta.url),
);
