// The program that tests start: `skein`.

import { fileURLToPath } from "node:url";

/**
 * `npm test` builds it first and says so: what is compiled starts in half the time. Single files, started by vitest itself, run what
 * is in src/ now.
 */
export const MAIN = fileURLToPath(
  new URL(process.env.TESTS_BUILT ? "../../dist/main.js" : "../../src/main.ts", import.meta.url),
);
