// Plain English and one name per idea, in code, comments, messages, test titles and docs. docs/glossary.md has the
// words to use. The check covers the places in SWEPT: add a folder or file once it passes.

import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const SWEPT = `
  src/admin
  src/app.ts
  src/app
  src/agents
  src/core
  src/lib
  src/models
  src/quotas
  bench
  config
  docs/models.md
  docs/monitoring.md
  src/telemetry
  src/backends
  src/hooks
  src/tools
  src/cli
  src/client
  src/config
  src/http
  test/http
  test/runs
  test/e2e
  src/runs
  src/stores
  src/index.ts
  src/library
  src/main.ts
  src/page
  test/cli
  test/client
  test/examples
  test/hooks
  test/library
  test/agents
  test/config
  test/core
  test/lib
  test/models
  test/page
  test/quotas
  test/rooms.test.ts
  test/tools
  examples
  docs/admin.md
  docs/architecture.md
  docs/backends.md
  docs/chat.md
  docs/client.md
  docs/configuration.md
  docs/decisions
  docs/deploy.md
  docs/events.md
  docs/glossary.md
  test/backends
  docs/http-api.md
  docs/library.md
  docs/operations.md
  docs/page.md
  docs/performance.md
  docs/recipes
  docs/sandbox-security.md
  test/support
  docs/security.md
  AGENTS.md
  CHANGELOG.md
  CONTRIBUTING.md
  SECURITY.md
  test/deploy
  README.md
`;

/** Words and phrases to replace, in any case. */
const UNCLEAR = `
  whoever, whatever, whichever, somebody, anybody, nobody, anew, mend, hitherto, for oneself, of one's own, of ours,
  is told, are told, was told, goes on, go on, going on, gone on, is gone, are gone, to be had, for ever, as befits,
  that there is, once and for all, again and again, over and over, of its own accord, serve us
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

test.each(words(SWEPT))("%s is written in plain English", (place) => {
  const files = globSync([place, `${place}/**/*.*`]).filter((file) => /\.\w+$/.test(file));
  expect(files).not.toEqual([]);
  expect(files.flatMap((file) => findings(readFileSync(file, "utf8")).map((each) => [file, each]))).toEqual(
    [],
  );
});

test("an unclear phrase and a retired name are found, also across two lines of a comment", () => {
  expect(findings("// Whoever asks is\n  // told.\nanewly; goOn();")).toHaveLength(3);
});
