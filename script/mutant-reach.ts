// Finds the test files that reach a file of the program, through imports and through the names of files that they
// start. Tests that script/mutants/ names for the file or its folder come first.

import { execFileSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { basename, dirname, join, posix } from "node:path";
import { parse } from "yaml";
import { longFiles } from "../test/support/groups.ts";
import { ROOT } from "./mutant-trees.ts";

/** Ignores `import type`, which has no effect at run time. */
const IMPORT = /(?:^import (?!type )|^export (?!type )|^\} |\bimport\(\s*)[^"';]*?"(\.[^"]+)"/gm;
/** The page's entry, and the module with which tests open the built page in a browser. */
const PAGE = { entry: "src/page/main.tsx", opener: "test/support/chromium.ts" };
const STARTED = /["'`](?:\.\.\/)*((?:src|test)\/[\w./-]+\.tsx?)["'`]/g;
/** Added to the distance of tests in files that `npm test` omits. */
const LONG = 4;
/** The distance, in imports, of a test that script/mutants/ names for a file or folder. */
const NAMED = { file: 6, folder: 3 };

export interface Reach {
  /**
   * Returns all test files that reach the file, nearest first. Among files at the same distance, the files that share the
   * most words of its path come first.
   */
  testsOf(file: string): string[];
  /** Returns true for a file that the page contains. Browsers see an edit to it in a new build only. */
  isOfPage(file: string): boolean;
}

export function createReach(): Reach {
  const files = listed("src/**/*.ts", "src/**/*.tsx", "test/**/*.ts", "test/**/*.tsx");
  const importers = importersOf(files);
  const read = new Map<string, string>();
  const textOf = (test: string) =>
    read.get(test) ?? read.set(test, readFileSync(join(ROOT, test), "utf8").toLowerCase()).get(test) ?? "";
  const named = namedTests();
  const long = new Set(longFiles());
  const testsOf = (file: string) => {
    const weights = [...distancesFrom(file, importers)]
      .filter(([each]) => each.endsWith(".test.ts") && !isWithEngine(each))
      .map(([test, distance]) => {
        const own = (roomOf(test) === roomOf(file) ? 1 : 0) + (nameOf(test) === nameOf(file) ? 2 : 0);
        const isOf = named.get(file)?.has(test) ? NAMED.file : 0;
        const isNear = named.get(dirname(file))?.has(test) ? NAMED.folder : 0;
        return { test, weight: distance - own - Math.max(isOf, isNear) + (long.has(test) ? LONG : 0) };
      });
    const words = file.split(/[/.-]/).slice(1, -1);
    const relevance = (test: string) => words.filter((word) => textOf(test).includes(word)).length;
    return weights
      .map((each) => ({ ...each, relevance: relevance(each.test) }))
      .sort((a, b) => a.weight - b.weight || b.relevance - a.relevance || (a.test < b.test ? -1 : 1))
      .map(({ test }) => test);
  };
  return { testsOf, isOfPage: (file) => distancesFrom(file, importers).has(PAGE.entry) };
}

/** Returns named tests, by file and by folder. */
function namedTests(): Map<string, Set<string>> {
  const named = new Map<string, Set<string>>();
  for (const path of globSync("script/mutants/*.yaml", { cwd: ROOT }))
    for (const group of parse(readFileSync(join(ROOT, path), "utf8")) as Group[])
      for (const key of [group.file, dirname(group.file)])
        for (const { tests } of [group, ...group.edits])
          for (const test of tests ?? []) named.set(key, (named.get(key) ?? new Set()).add(test));
  return named;
}

interface Group {
  readonly file: string;
  readonly tests: readonly string[];
  readonly edits: readonly { readonly tests?: readonly string[] }[];
}

const listed = (...patterns: string[]) =>
  execFileSync("git", ["ls-files", ...patterns.map((each) => `:(glob)${each}`)], {
    cwd: ROOT,
    encoding: "utf8",
  })
    .trim()
    .split("\n");

function importersOf(files: readonly string[]): Map<string, string[]> {
  const importers = new Map(files.map((file) => [file, [] as string[]]));
  for (const file of files) {
    const text = readFileSync(join(ROOT, file), "utf8");
    const imported = [...text.matchAll(IMPORT)].map(([, path = ""]) => posix.join(dirname(file), path));
    const started = [...text.matchAll(STARTED)].map(([, path = ""]) => path);
    for (const each of new Set([...imported, ...started])) importers.get(each)?.push(file);
  }
  importers.get(PAGE.entry)?.push(PAGE.opener);
  return importers;
}

function distancesFrom(file: string, importers: ReadonlyMap<string, readonly string[]>): Map<string, number> {
  const distances = new Map([[file, 0]]);
  for (const [each, distance] of distances)
    for (const importer of importers.get(each) ?? [])
      if (!distances.has(importer)) distances.set(importer, distance + 1);
  return distances;
}

const isWithEngine = (test: string) => /(^|\/)docker\/|\.docker\.test\.ts$/.test(test);
const roomOf = (file: string) => dirname(file).split("/").slice(1).join("/");
const nameOf = (file: string) => basename(file).replace(/(\.test)?\.tsx?$/, "");
