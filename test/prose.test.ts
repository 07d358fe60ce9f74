// Plain English and one name per idea, in code, comments, messages, test titles and docs. docs/reference/glossary.md has the
// words to use. The check covers all of SWEPT but this file.

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const SWEPT = "*.md compose.yaml bench config deploy docker docs examples script src test".split(" ");

/** Words and phrases to replace, in any case. */
const UNCLEAR = `
  whoever, whatever, whichever, somebody, anybody, nobody, anew, mend, hitherto, for oneself, of one's own, of ours,
  is told, are told, was told, goes on, go on, going on, gone on, is gone, are gone, to be had, for ever, as befits,
  that there is, once and for all, again and again, over and over, of its own accord, serve us,
  all that is, all the same, lately, look after, looks after, looked after
`;

/** Names that have a successor in the glossary or the code, in exactly this case. */
const RETIRED = `
  withLeftovers, neverStarted, crashedTooOften, closingOf, giveUp, executeAside, takeUp, askToGoOn, goOn,
  nobodyThere, lateAnswers, MarkReader, LaneLost, FAREWELL, hostHolder, letGo, LAST_WORDS_MS, ASKING_MS
`;

const words = (list: string) => list.trim().split(/\s*,\s*|\s*\n\s*/);
const unclear = new RegExp(String.raw`\b(?:${words(UNCLEAR).join("|")})\b`, "gi");
const retired = new RegExp(String.raw`\b(?:${words(RETIRED).join("|")})\b`, "g");

/** What to replace, each with its surroundings. A phrase may be broken across the lines of a comment. */
function findings(text: string): string[] {
  const flowing = text.replaceAll(/\n\s*(?:\/\/|\*|#|>)?\s*/g, " ");
  return [...flowing.matchAll(unclear), ...flowing.matchAll(retired)].map(
    ({ 0: found, index }) => `\`${found}\` in: ${flowing.slice(Math.max(0, index - 50), index + 50)}`,
  );
}

test.each(SWEPT)("%s is written in plain English", (place) => {
  const files = globSync([place, `${place}/**`], { withFileTypes: true })
    .filter(
      (entry) => entry.isFile() && !/\.(?:gif|png|webp)$/.test(entry.name) && entry.name !== "prose.test.ts",
    )
    .map((entry) => join(entry.parentPath, entry.name));
  expect(files).not.toEqual([]);
  expect(files.flatMap((file) => findings(readFileSync(file, "utf8")).map((each) => [file, each]))).toEqual(
    [],
  );
});

test("an unclear phrase and a retired name are found, even across two lines of a comment", () => {
  expect(findings("// Whoever asks is\n  // told.\nanewly; goOn();")).toHaveLength(3);
});
