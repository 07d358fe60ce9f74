// Properties that hold for every command line.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decide } from "../../../../src/agent/hooks/permissions/policy.ts";
import { callOf, policyOf, type Spec, toolNamed, verdict, verdictOn } from "./given.ts";

const allowed: Spec = { allow: "execute", command_prefix: ["ls", "cat", "cd"] };
const denied: Spec = { deny: "execute", command_prefix: ["rm"] };

const words = fc.constantFrom(
  ...["a", "-l", "'b c'", '"d e"', "'$(x)'", '"it\'s"', "''", "src/*.ts", "--", "HEAD^", "'rm'", "2>&1", "é"],
);
const harmless = fc
  .tuple(fc.constantFrom("ls", "cat", "cd"), fc.array(words, { maxLength: 3 }))
  .map(([name, args]) => [name, ...args].join(" "));
const separator = fc.constantFrom(";", " ; ", "&&", " && ", "||", "|", " | ", " & ", "\n", " \n ");

/** A line of shell quotes that means the line. */
const quote = (line: string) => `'${line.replaceAll("'", "'\\''")}'`;
const inDoubleQuotes = (line: string) => line.replace(/[\\"$`]/g, "\\$&");

/** Each runs the line, some of them by way of another program. */
const WAYS: readonly ((line: string) => string)[] = [
  (line) => `(${line})`,
  (line) => `{ ${line}; }`,
  (line) => `if ls; then ${line}; fi`,
  (line) => `ls $(${line})`,
  (line) => `ls "a $(${line}) b"`,
  (line) => `ls <(${line})`,
  (line) => `ls \`${line.replace(/[\\`$]/g, "\\$&")}\``,
  (line) => `sh -c ${quote(line)}`,
  (line) => `bash -c "${inDoubleQuotes(line)}"`,
  (line) => `env -i A=1 sh -c ${quote(line)}`,
  (line) => `eval ${quote(line)}`,
  (line) => `echo ${quote(line)} | sh`,
  (line) => `cat <<'END' | sh\nit's\n${line}\nEND`,
  (line) => `find . -exec sh -c ${quote(line)} \\;`,
  (line) => `ls # it's\n${line}`,
  (line) => `f() { ${line}; }; f`,
];
const FRONTS = [
  "sudo ",
  "A=1 ",
  "env A=b ",
  "nohup ",
  "timeout -k 1 5 ",
  "command ",
  ">out ",
  "2>&1 ",
  "! ",
  "time ",
];
const NAMES = ["rm", "/bin/rm", "'rm'", '"rm"', "r\\m", "r''m", 'r""m', "\\rm", "r\\\nm"];

const removal = fc
  .tuple(fc.array(fc.constantFrom(...FRONTS), { maxLength: 2 }), fc.constantFrom(...NAMES))
  .map(([fronts, name]) => `${fronts.join("")}${name} -rf src`);
const wrapped = fc
  .tuple(removal, fc.array(fc.constantFrom(...WAYS), { maxLength: 3 }))
  .map(([line, ways]) => ways.reduce((inner, way) => way(inner), line));
const around = fc.array(fc.tuple(harmless, separator), { maxLength: 3 });
const smuggled = fc
  .tuple(around, wrapped, around)
  .map(([before, line, after]) =>
    [
      ...before.map(([command, by]) => command + by),
      line,
      ...after.map(([command, by]) => by + command),
    ].join(""),
  );

describe("every line", () => {
  test("made of allowed commands is allowed, however they are joined", () => {
    const joined = fc
      .tuple(harmless, fc.array(fc.tuple(fc.constantFrom(";", " && ", "||", " | ", " & "), harmless)))
      .map(([first, others]) => first + others.flat().join(""));
    fc.assert(fc.property(joined, (line) => verdictOn(line, [allowed]).decision === "allow"));
  });

  test("that contains another command is not allowed", () => {
    fc.assert(
      fc.property(smuggled, (line) => verdictOn(line, [allowed]).decision === "ask"),
      { numRuns: 500 },
    );
  });

  test("that runs a denied command is denied", () => {
    fc.assert(
      fc.property(smuggled, (line) => verdictOn(line, [denied], "bypass").decision === "deny"),
      { numRuns: 500 },
    );
  });
});

const PIECES = [
  ...[
    "rm",
    "ls",
    "a",
    " ",
    "\n",
    "\t",
    "\r",
    "\0",
    "é",
    "\u{1f9f5}",
    "\ud800",
    "\u00a0",
    "#",
    "=",
    "~",
    "!",
    "%",
  ],
  ...[
    ";",
    "&",
    "|",
    "(",
    ")",
    "{",
    "}",
    "$",
    "`",
    "'",
    '"',
    "\\",
    "<",
    ">",
    "*",
    "?",
    "[",
    "]",
    "-c",
    "<<E",
    "$(",
  ],
  ...["env ", "sh -c ", "A=", "git ", "1", "5s "],
];
const noise = fc.array(fc.oneof(fc.constantFrom(...PIECES), fc.string({ unit: "binary", maxLength: 3 })), {
  maxLength: 40,
});
const rules: Spec[] = [
  { ...denied, command_prefix: ["rm -rf", "git push"] },
  { ask: "*", regex: "rm|push$" },
  { allow: "execute", regex: "ls .*" },
  allowed,
];

test("never makes a decision fail", () => {
  fc.assert(
    fc.property(noise, fc.dictionary(fc.string(), fc.jsonValue()), (pieces, args) => {
      const call = { name: "execute", args: { ...args, command: pieces.join("") } };
      expect(["allow", "deny", "ask"]).toContain(verdict(call, rules).decision);
    }),
    { numRuns: 500 },
  );
});

// Work that grew with the square of the length would run into the time limit of the test.
test("is decided, even if it is very long", () => {
  const policy = policyOf(rules);
  const tool = toolNamed("execute");
  const decided = (unit: string, length: number) => {
    const command = unit.repeat(Math.ceil(length / unit.length)).slice(0, length);
    return decide(callOf("execute", { command }), tool, policy).decision;
  };
  const unit = fc
    .array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 4 })
    .map((each) => each.join(""));
  fc.assert(
    fc.property(unit, (each) => ["allow", "deny", "ask"].includes(decided(each, 32_768))),
    { numRuns: 10 },
  );
});
