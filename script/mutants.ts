// Tests the tests: breaks one line of the program at a time, in a copy, and expects a test of its room to fail. The
// edits are in script/mutants/*.yaml. `--only <text>` runs the edits whose file or promise contains the text. `--share
// commit` runs one share of about 12 edits, selected by the commit's hash, and prints its number. `--share 2/3` runs that
// share. `--check` runs no edits, and fails if one does not fit the program. Exits with 1 if an edit survives for which the list gives no
// reason. An edit with which the tests do not end counts as killed.

import { globSync, readFileSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { parse } from "yaml";
import { z } from "zod";
import { check, sentence } from "../src/lib/check.ts";
import { numberOfCommit } from "./commit-number.ts";
import type { Failure } from "./mutant-tests.ts";
import { buildPage, makeTree, ROOT, removeTree, runTests, type Tree } from "./mutant-trees.ts";

const LISTS = join(ROOT, "script/mutants");
/** Number of copies of the program. Each has two processes that run tests, and loads the program on its own. */
const WORKERS = 2;
/** Minimum number of edits in a share. */
const SHARE = 12;

const OPTIONS = {
  only: { type: "string", default: "" },
  share: { type: "string", default: "1/1" },
  check: { type: "boolean", default: false },
} as const;

const Edit = z.strictObject({
  /** The behaviour that a killing test checks. */
  promise: z.string(),
  /** A text that occurs exactly once in the file. */
  find: z.string(),
  replace: z.string(),
  /** Used instead of the group's tests. */
  tests: z.array(z.string()).min(1).optional(),
  /**
   * Runs only tests whose names match this pattern, for files that take long as a whole. It must match part of one name, in one
   * of the files or in a contract.
   */
  title: z.string().optional(),
  /** The reason why no test can kill it. */
  survives: z.string().optional(),
});
const Group = z.strictObject({
  file: z.string(),
  tests: z.array(z.string()).min(1),
  edits: z.array(Edit).min(1),
});

interface Mutant extends z.output<typeof Edit> {
  readonly file: string;
  readonly tests: string[];
  readonly line: number;
  /** The whole file, including the edit. */
  readonly text: string;
}

type Outcome = "killed" | "hung" | "survived" | "explained";

async function main(): Promise<number> {
  const { values } = parseArgs({ options: OPTIONS });
  const listed = await readMutants();
  if (values.check) return 0;
  const fitting = listed.filter(({ file, promise }) => `${file} ${promise}`.includes(values.only));
  if (fitting.length === 0) throw new Error(`No mutant's file or promise contains \`${values.only}\`.`);
  const mutants = shareOf(fitting, values.share);

  const trees: Tree[] = [];
  try {
    for (let made = 0; made < WORKERS; made++) trees.push(await makeTree());
    const outcomes: Outcome[] = [];
    const killers: Failure[] = [];
    const rest = mutants.values();
    await all(
      trees.map(async (_, index) => {
        for (const mutant of rest) {
          const killer = await tryOne(trees[index] as Tree, mutant);
          outcomes.push(tell(mutant, killer === "hung" ? "hung" : killer ? "killed" : "survived"));
          if (killer === "hung") trees[index] = await replaceTree(trees[index] as Tree);
          else if (killer) killers.push(killer);
        }
      }),
    );
    await checkKillers(trees, killers);
    return summary(outcomes);
  } finally {
    await Promise.all(trees.map(removeTree));
  }
}

/** Waits for all of them, then throws the first error. */
async function all(work: readonly Promise<void>[]): Promise<void> {
  for (const each of await Promise.allSettled(work)) if (each.status === "rejected") throw each.reason;
}

/** Each commit tries one share, so all shares are tried over time. */
function shareOf(mutants: readonly Mutant[], share: string): readonly Mutant[] {
  const shares = Math.max(1, Math.floor(mutants.length / SHARE));
  const [number, of] = (share === "commit" ? `${1 + (numberOfCommit() % shares)}/${shares}` : share)
    .split("/")
    .map(Number);
  const chosen = mutants.filter((_, index) => index % (of ?? 0) === (number ?? 0) - 1);
  if (chosen.length === 0)
    throw new Error(`--share ${share} is invalid: expected a share such as 1/2, or commit.`);
  if (chosen.length < mutants.length)
    console.log(
      `${chosen.length} of ${mutants.length} edits, share ${number} of ${of}. ` +
        `To repeat it: npm run mutants -- --share ${number}/${of}. All: npm run mutants.\n`,
    );
  return chosen;
}

/** Throws with all errors in the lists. An edit that no longer fits the code is an error. */
async function readMutants(): Promise<Mutant[]> {
  const problems: string[] = [];
  const mutants: Mutant[] = [];
  const contracts = globSync("test/contracts/**/*.ts", { cwd: ROOT });
  const isNamed = (title: string, tests: readonly string[]) =>
    [...tests, ...contracts].some((path) => new RegExp(title).test(readFileSync(join(ROOT, path), "utf8")));
  for (const name of (await readdir(LISTS)).sort()) {
    const checked = check(z.array(Group), parse(await readFile(join(LISTS, name), "utf8")));
    if ("faults" in checked) {
      problems.push(...checked.faults.map((fault) => `script/mutants/${name}: ${sentence(fault)}`));
      continue;
    }
    for (const { file, tests, edits } of checked.value) {
      const text = await readFile(join(ROOT, file), "utf8");
      for (const edit of edits) {
        if (edit.title !== undefined && !isNamed(edit.title, edit.tests ?? tests))
          problems.push(
            `script/mutants/${name}: ${file}: no test is named \`${edit.title}\` (${edit.promise}).`,
          );
        const made = apply({ ...edit, file, tests: edit.tests ?? tests }, text);
        if (typeof made === "string") problems.push(`script/mutants/${name}: ${file}: ${made}`);
        else mutants.push(made);
      }
    }
  }
  if (problems.length > 0) throw new Error(problems.join("\n"));
  return mutants;
}

/** Returns the mutant, or the reason why the edit cannot be applied. */
function apply(edit: Omit<Mutant, "line" | "text">, text: string): Mutant | string {
  const parts = text.split(edit.find);
  if (parts.length !== 2)
    return `\`${edit.find}\` must occur once, and occurs ${parts.length - 1} times (${edit.promise}).`;
  const mutated = parts.join(edit.replace);
  try {
    if (mutated === text) return `\`${edit.find}\` is replaced by itself.`;
    stripTypeScriptTypes(mutated);
  } catch (error) {
    return `with \`${edit.replace}\` it is no TypeScript: ${String(error)}`;
  }
  return { ...edit, text: mutated, line: parts[0]?.split("\n").length ?? 0 };
}

/** Throws if a test that killed an edit also fails without it, because its failure then proves nothing. */
async function checkKillers(trees: readonly Tree[], killers: readonly Failure[]): Promise<void> {
  const files = Map.groupBy(killers, ({ file }) => file).entries();
  const faults: string[] = [];
  await all(
    trees.map(async (tree) => {
      for (const [file, failures] of files) {
        const names = [...new Set(failures.map(({ name }) => name))];
        const told = await runTests(tree, { files: [file], names, changed: file, bail: false });
        if (told === "hung") {
          faults.push(`${file}: ${names.join(", ")} have not ended.`);
          return;
        }
        const failed = told.failed.map(({ name, why }) => `${file}: ${name}: ${why}`);
        faults.push(...failed, ...told.faults);
        const seen = told.passed + failed.length;
        if (seen < names.length) faults.push(`${file}: only ${seen} of ${names.join(", ")} were run.`);
      }
    }),
  );
  if (faults.length > 0) throw new Error(`The tests fail without any edit:\n${faults.join("\n")}`);
}

/** Returns the first test that fails with the edit, or "hung" if the tests do not end. */
async function tryOne(tree: Tree, mutant: Mutant): Promise<Failure | "hung" | undefined> {
  const { file, tests, title, text } = mutant;
  const changed = join(tree.folder, file);
  const original = await readFile(changed, "utf8");
  const isInBrowser = tests.some((test) => test.startsWith("test/page/"));
  const write = async (source: string) => {
    await writeFile(changed, source);
    if (isInBrowser) buildPage(tree.folder);
  };
  await write(text);
  try {
    const order = { files: tests, changed, bail: true, ...(title === undefined ? {} : { title }) };
    const told = await runTests(tree, order);
    if (told === "hung") return told;
    const { failed, passed, faults } = told;
    if (failed[0] || (passed > 0 && faults.length === 0)) return failed[0];
    throw new Error(`no test of ${tests.join(", ")} was run. ${faults.join("\n")}`);
  } catch (error) {
    throw new Error(`${placeOf(mutant)} (${mutant.promise}): ${(error as Error).message}`);
  } finally {
    await write(original);
  }
}

const placeOf = ({ file, line }: Mutant) => `${file}:${line}`;

/** An edit that blocks the process of the tests has ended it for all of them. */
async function replaceTree(tree: Tree): Promise<Tree> {
  await removeTree(tree);
  return makeTree();
}

function tell(mutant: Mutant, outcome: "killed" | "hung" | "survived"): Outcome {
  const { promise, survives } = mutant;
  const why = outcome === "survived" && survives !== undefined ? ` (${survives})` : "";
  console.log(`${outcome.padEnd(8)} ${placeOf(mutant).padEnd(44)} ${promise}${why}`);
  return why ? "explained" : outcome;
}

function summary(outcomes: readonly Outcome[]): number {
  const count = (wanted: Outcome) => outcomes.filter((outcome) => outcome === wanted).length;
  const killed = count("killed") + count("hung");
  console.log(
    `\n${killed} of ${outcomes.length} killed, of which ${count("hung")} hung; ` +
      `${count("explained")} survive for a reason, ${count("survived")} without one`,
  );
  return count("survived") === 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
