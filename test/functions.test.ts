// How long functions may be. A closure that returns an object of functions counts as one.

import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { linesOfCode, longFunctions } from "../script/functions.ts";

/** Functions of src/ with more lines of code than that. Lower these numbers when you cut one; never raise them. */
const OVER_60 = 110;
const OVER_150 = 0;

test("the number of long functions only falls", () => {
  const found = longFunctions("src", 60);
  const named = (over: number) =>
    found.filter(({ lines }) => lines > over).map(({ at, name, lines }) => `${at} ${name}: ${lines} lines`);
  expect(named(150).length, named(150).join("\n")).toBeLessThanOrEqual(OVER_150);
  expect(named(60).length, named(60).join("\n")).toBeLessThanOrEqual(OVER_60);
});

/** Lines of the reader of shell lines. It does not grow: sandboxes, their network and flow rules hold what a reader of text cannot. */
const SHELL_READER = 1752;

test("the shell parser only gets shorter", () => {
  const files = globSync("src/agent/hooks/permissions/shell/**/*.ts");
  const lines = files.map((file) => readFileSync(file, "utf8").split("\n").length - 1);
  expect(lines.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(SHELL_READER);
});

test("blank lines and comments do not make a function longer", () =>
  expect(linesOfCode(["f() {", "", "  // why", "  /** what", "   * it is", "   */", "  a * b;", "}"])).toBe(
    3,
  ));
