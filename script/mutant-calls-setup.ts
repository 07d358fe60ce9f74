// Before each test file: begins a new record of the functions that are called. After it: adds the record to the others.

import { appendFileSync } from "node:fs";
import { relative } from "node:path";
import { afterAll, expect } from "vitest";
import { CALLS } from "./mutant-calls.ts";

const called = new Set<string>();
Object.assign(globalThis, { skeinCalled: called });

afterAll(() => {
  const test = relative(process.cwd(), expect.getState().testPath ?? "");
  appendFileSync(CALLS, `${JSON.stringify({ test, called: [...called] })}\n`);
});
