// Which calls of JavaScript's own searches are left: those for a literal, in a list, or for a short text that is not a stranger's. All others take the
// product of two lengths on a stranger's text (src/lib/search.ts), and `normalize` the square of one (src/lib/unicode.ts).

import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const CALL =
  /([\w\])"`]+)(?:\?|!)?\s*\.(indexOf|lastIndexOf|includes|split|replaceAll|normalize)\(\s*([^\s,)]*)/g;
/** A literal, an expression, a number, a constant, or one character. */
const LITERAL = /^(?:"|'|`[^`$]*`|\/|-?\d|new$|[A-Z][A-Z_\d]+$|[\w.]+\.charAt\()/;
/** A list is called by a plural, or by what has happened to its members; or it is written where it is used. */
const LIST = new RegExp(
  `(?:[a-z]s|\\]|[A-Z]{2}|^(?:${[
    ..."active after awaited before begun chosen configured dropped given greeting inbox known made".split(
      " ",
    ),
    ..."named old own queue ready required through valued wrong".split(" "),
  ].join("|")}))$`,
);
const TEXTS_IN_PLURAL = new Set(["bytes", "words", "address"]);

/** What needle it is, and why it cannot take long. */
const KNOWN: Readonly<Record<string, string>> = {
  "src/agent/agents/doubts.ts: path.split(delimiter": "one character",
  "src/agent/agents/text-beside.ts: way.split(sep": "one character",
  "src/agent/agents/model-choice.ts: own)).includes(full": "a list",
  "src/agent/agents/model-choice.ts: ).includes(name": "a list",
  "src/sandbox/shell/prelude.ts: end).split(`${mark}:`": "a random mark that Skein made",
  "src/sandbox/shell/read.ts: output.indexOf(line": "a line that Skein made, with a random mark",
  "src/sandbox/shell/session.ts: bytes.indexOf(this.#mark": "a random mark that Skein made",
  "src/agent/hooks/permissions/match.ts: expression.indexOf(literal":
    "both are a part of a rule, whose length is bounded",
  'src/agent/hooks/permissions/shell/simple-command.ts: ".includes(char': "one character",
  "src/agent/hooks/permissions/shell/uses/index.ts: `.includes(letter": "one character",
  "src/lib/did-you-mean.ts: a.includes(b": "both have at most 64 characters",
  "src/lib/did-you-mean.ts: b.includes(a": "both have at most 64 characters",
  "src/agent/models/package.ts: message.includes(`'${name}'`": "a message of the module loader",
  "src/page/oidc.ts: ).includes(client_id": "a list",
  "src/server/plugins/fault-place.ts: text.indexOf(quoted": "an operator's own code",
  "src/server/plugins/import.ts: url.includes(`${VERSION}=`": "a constant",
  "src/agent/tools/mcp/stdio.ts: environment.includes(`${MARK}=${mark}`": "a random mark that Skein made",
};

function searches(file: string, text: string): string[] {
  return [...text.matchAll(CALL)].flatMap(([call, receiver = "", name = "", needle = ""]) => {
    if (name !== "normalize" && LITERAL.test(needle)) return [];
    const mayBeList = /^(?:indexOf|lastIndexOf|includes)$/.test(name) && !TEXTS_IN_PLURAL.has(receiver);
    return mayBeList && LIST.test(receiver) ? [] : [`${file}: ${call}`];
  });
}

test("other people's text is searched only by src/lib/search.ts and normalized only by src/lib/unicode.ts", () => {
  const files = globSync("src/**/*.{ts,tsx}").filter((file) => !/lib\/(?:search|unicode)\.ts$/.test(file));
  expect(files.length).toBeGreaterThan(500);
  const found = files.flatMap((file) => searches(file, readFileSync(file, "utf8")));
  expect(found.filter((each) => !(each in KNOWN))).toEqual([]);
});

test("a native search is found", () => {
  const code = `text.indexOf(needle); body.split(mark); all.replaceAll(secret, "***"); name.normalize("NFC"); bytes.includes(old)
    text.indexOf("x"); names.includes(name); [a, b].includes(c); path.split("/"); text.replaceAll(SPACES, " ")`;
  expect(searches("a.ts", code)).toEqual([
    "a.ts: text.indexOf(needle",
    "a.ts: body.split(mark",
    "a.ts: all.replaceAll(secret",
    'a.ts: name.normalize("NFC"',
    "a.ts: bytes.includes(old",
  ]);
});
