// The readings of command lines, held against what the shells of this machine do with the same lines.

import fc from "fast-check";
import { expect } from "vitest";
import { fullReading } from "../../../../src/agent/hooks/permissions/shell/known-commands.ts";
import { plainReading } from "../../../../src/agent/hooks/permissions/shell/simple-command.ts";
import { needing } from "../../../support/needing.ts";
import { isNightly, sampled, seedOr } from "../../../support/seed.ts";
import { SMUGGLED } from "./commands.ts";
import { hasShells, playground } from "./real-shells.ts";

const PIECES = [
  ...["ok", "evil", "ok ", "evil ", "ev", "il", "a", "x", "1", "2", "-", ",", ":", "@", "%", "^", "+", "é"],
  ...[
    " ",
    "\t",
    "\n",
    "\r",
    "\u00a0",
    "\\\n",
    ";",
    "&",
    "&&",
    "||",
    "|",
    "(",
    ")",
    "()",
    "{ ",
    " }",
    "{",
    "}",
  ],
  ...["$", "`", "'", '"', "\\", "#", "=", "~", "*", "?", "[", "]", "!", "$(", "$((", "))", "${", "$'", "$A"],
  ...["<", ">", "<<", "<(", ">&", "&>", "2>&1", "/dev/null", "<<E\n", "\nE\n", "A=1 ", "A=evil "],
  ...[
    "env ",
    "eval ",
    "exec ",
    "command ",
    "sh -c ",
    "xargs ",
    "cat ",
    "nohup ",
    "timeout 1 ",
    ". ",
    "trap ",
  ],
  ...["if ", "then ", "fi", "do ", "while ", "done", "in ", "case a in a) ", ";; esac", "time ", "function "],
];
const line = fc
  .tuple(fc.constantFrom("ok ", "evil ", ""), fc.array(fc.constantFrom(...PIECES), { maxLength: 9 }))
  .map(([first, others]) => first + others.join(""));

/** Those that run no other program in these lines. */
const KNOWN = /^(ok|evil|cat|x|1|2|a)$/;

/** What the shells did that the readings do not know of. */
function surprises(line: string, runs: readonly (readonly string[][])[]): string[] {
  const reading = plainReading(line);
  const commands = "commands" in reading ? reading.commands : undefined;
  const isExact = commands?.flat().every(({ isLiteral }) => isLiteral);
  const known = commands?.map((words) => words.map(({ text }) => text).join("\0"));
  const isKnown = (call: readonly string[]) =>
    isExact ? known?.includes(call.join("\0")) : commands?.some(([name]) => name?.text === call[0]);
  const full = fullReading(line);
  const isSeen = (name = "") =>
    "doubt" in full ||
    full.commands.some(
      ({ words: [first] }) => first && (!first.isLiteral || first.text === name || !KNOWN.test(first.text)),
    );
  return runs
    .flat()
    .flatMap((call) => [
      ...(commands && !isKnown(call) ? [`${JSON.stringify(line)} is not plain: ${call.join(" ")}`] : []),
      ...(!isSeen(call[0]) ? [`${JSON.stringify(line)} hides what it runs`] : []),
    ]);
}

const { test } = needing(hasShells, "dash, bash and busybox");

test("no shell runs more than the strict parser reports, or anything that the broad parser misses", () => {
  using shells = playground();
  // The same lines each time: what a shell does with others may take long.
  fc.assert(
    fc.property(line, (each) => {
      expect(surprises(each, [...shells.run(each)])).toEqual([]);
    }),
    { numRuns: isNightly ? 100 : 30, seed: seedOr(6) },
  );
});

test("most of the smuggling lines work: some shell runs the command", () => {
  using shells = playground();
  const removing = SMUGGLED.filter((each) => /\brm -rf src/.test(each));
  const lines = sampled(removing, 3).map((each) =>
    each.replaceAll("rm -rf src", "evil").replace(/\bls\b/g, "ok"),
  );
  const ranIt = (calls: string[][]) => calls.some(([name]) => name === "evil");
  const successful = lines.filter((each) => shells.run(each).some(ranIt));
  expect(successful.length / lines.length).toBeGreaterThan(0.5);
});
