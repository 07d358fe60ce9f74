// Tests the tests with generated bugs. Draws edits to src/ (script/mutant-edits.ts) evenly over the lines that have any.
// Then runs the test files that call the edited function, or else the files that reach it by imports, nearest first,
// until one fails. Skips edits that the compiler rejects.
//   --count 300 --seed 7    number of edits, and the seed: the same seed draws the same edits to the same sources
//   --only <text>           only files whose path contains the text
//   --record                first runs all tests once, to record which functions each test file calls
//   --tests 24              number of test files to try before an edit counts as survived
//   --trees 1               number of copies of the program that run tests at the same time, each with two processes
// Stores outcomes in node_modules/.cache/mutants.jsonl, so a repeated run tries only edits without an outcome.
// Skips generated files, log statements, durations, long tables of numbers, types, and attributes of the page's views.
// Exits with 1 if fewer than 95 % are killed.

import { execFile, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, existsSync, globSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { API } from "typescript/unstable/sync";
import { createRandom } from "../test/chaos/random.ts";
import { type Body, bodiesOf, CALLS, keyOf, recordedCalls, versionOf } from "./mutant-calls.ts";
import { type Edit, editsOf } from "./mutant-edits.ts";
import { createReach, type Reach } from "./mutant-reach.ts";
import type { Failure, Told } from "./mutant-tests.ts";
import { makeTree, ROOT, removeTree, runTests, type Tree } from "./mutant-trees.ts";

const WANTED = 0.95;
const JOURNAL = join(ROOT, "node_modules/.cache/mutants.jsonl");
const GENERATED = new Set(["src/client/wire.ts"]);
const PROJECTS = ["tsconfig.json", "src/page/tsconfig.json"].map((path) => join(ROOT, path));
/** The number of test files in the first batch. The first files usually kill the edit. */
const BATCH = 4;

const OPTIONS = {
  count: { type: "string", default: "300" },
  seed: { type: "string", default: `${Date.now() % 100_000}` },
  only: { type: "string", default: "" },
  record: { type: "boolean", default: false },
  tests: { type: "string", default: "24" },
  trees: { type: "string", default: "1" },
} as const;

interface Mutant extends Edit {
  readonly file: string;
  readonly line: number;
  readonly before: string;
  /** The innermost function around the edit, as tests record it, or undefined outside of functions. */
  readonly calls?: string;
  /** The whole file, including the edit. */
  readonly text: string;
  /** A hash of the edit and the file, which identifies its outcome. */
  readonly id: string;
}

interface Outcome {
  readonly id: string;
  readonly how: "killed" | "hung" | "survived" | "unreached" | "untyped";
  readonly by?: string;
  readonly tried?: readonly string[];
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options: OPTIONS });
  const [count, limit, size] = [values.count, values.tests, values.trees].map(Number) as [
    number,
    number,
    number,
  ];
  if (values.record) recordCalls();
  console.log(`Seed ${values.seed}: ${count} edits.\n`);
  const journal = createJournal();
  const compiler = createCompiler();
  const drawn = draw(compiler, journal, values.seed, values.only);
  const trial = createTrial(createReach(), limit);
  const outcomes: Outcome[] = [];
  let left = count;
  const work = async () => {
    let tree = await makeBuiltTree();
    try {
      while (left-- > 0) {
        const { value: mutant } = drawn.next();
        if (!mutant) return;
        const known = journal.find(mutant.id);
        const outcome = known ?? (await trial(tree, mutant));
        if (!known) journal.add(outcome);
        outcomes.push(outcome);
        console.log(lineOf(mutant, outcome));
        if (known || outcome.how !== "hung") continue;
        await removeTree(tree);
        tree = await makeBuiltTree();
      }
    } finally {
      await removeTree(tree);
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: size }, work));
  compiler.close();
  for (const each of ended) if (each.status === "rejected") throw each.reason;
  return summary(outcomes);
}

/** Yields lines in random order, each with one edit that the compiler accepts. */
function* draw(compiler: Compiler, journal: Journal, seed: string, only: string): Generator<Mutant> {
  const random = createRandom(seed);
  const files = globSync("src/**/*.{ts,tsx}", { cwd: ROOT }).sort();
  const lines = files
    .filter((file) => !GENERATED.has(file) && file.includes(only))
    .flatMap((file) => [...Map.groupBy(mutantsOf(file, compiler), ({ line }) => line).values()]);
  for (const mutants of random.shuffle(lines)) {
    const typed = random.shuffle(mutants).find((mutant) => {
      const known = journal.find(mutant.id);
      if (known) return known.how !== "untyped";
      const isTyped = compiler.accepts(mutant);
      if (!isTyped) journal.add({ id: mutant.id, how: "untyped" });
      return isTyped;
    });
    if (typed) yield typed;
  }
}

function mutantsOf(file: string, compiler: Compiler): Mutant[] {
  const text = readFileSync(join(ROOT, file), "utf8");
  const { edits, bodies } = compiler.read(file);
  return edits.map((edit) => {
    const body = bodies.findLast(({ start, end }) => start <= edit.start && edit.end <= end);
    const mutated = text.slice(0, edit.start) + edit.replacement + text.slice(edit.end);
    return {
      ...edit,
      file,
      line: text.slice(0, edit.start).split("\n").length,
      before: text.slice(edit.start, edit.end),
      text: mutated,
      ...(body ? { calls: keyOf(file, versionOf(text), body.start) } : {}),
      id: createHash("sha256").update(`${file}\n${mutated}`).digest("base64url").slice(0, 16),
    };
  });
}

interface Compiler {
  read(file: string): { readonly edits: readonly Edit[]; readonly bodies: readonly Body[] };
  accepts(mutant: Mutant): boolean;
  close(): void;
}

function createCompiler(): Compiler {
  const edited = new Map<string, string>();
  const api = new API({ cwd: ROOT, fs: { readFile: (path) => edited.get(path) } });
  let snapshot = api.updateSnapshot({ openProjects: PROJECTS });
  const programOf = (path: string) =>
    PROJECTS.map((project) => snapshot.getProject(project)?.program).find((each) =>
      each?.getSourceFile(path),
    );
  const change = (path: string, text?: string) => {
    if (text === undefined) edited.delete(path);
    else edited.set(path, text);
    const before = snapshot;
    snapshot = api.updateSnapshot({ fileChanges: { changed: [path] } });
    before.dispose();
  };
  return {
    read(file) {
      const source = programOf(join(ROOT, file))?.getSourceFile(join(ROOT, file));
      return source ? { edits: editsOf(source), bodies: bodiesOf(source) } : { edits: [], bodies: [] };
    },
    accepts({ file, text }) {
      const path = join(ROOT, file);
      change(path, text);
      const program = programOf(path);
      const faults = [program?.getSyntacticDiagnostics(path), program?.getSemanticDiagnostics(path)].flat();
      change(path);
      // The linter, not the compiler, reports unused names.
      return faults.every((fault) => fault?.code === 6133);
    },
    close: () => api.close(),
  };
}

function recordCalls(): void {
  rmSync(CALLS, { force: true });
  mkdirSync(dirname(CALLS), { recursive: true });
  const env = { ...process.env, TESTS: "all" };
  const projects = ["--project", "plain", "--project", "alone"];
  const { status, signal, error } = spawnSync(
    process.execPath,
    [
      "node_modules/vitest/vitest.mjs",
      "run",
      "--config",
      "script/mutant-calls.config.ts",
      "--silent",
      ...projects,
    ],
    {
      ...{ cwd: ROOT, env, stdio: "inherit" },
    },
  );
  const end = error?.message ?? (signal ? `signal ${signal}` : `status ${status}`);
  console.log(`The tests that record calls have ended with ${end}.`);
  if (!existsSync(CALLS))
    throw new Error(`--record has made no ${CALLS}: see the output of the tests above.`);
}

interface Journal {
  find(id: string): Outcome | undefined;
  add(outcome: Outcome): void;
}

function createJournal(): Journal {
  mkdirSync(dirname(JOURNAL), { recursive: true });
  appendFileSync(JOURNAL, "");
  const kept = readFileSync(JOURNAL, "utf8").split("\n").filter(Boolean);
  const outcomes = new Map(kept.map((line) => JSON.parse(line) as Outcome).map((each) => [each.id, each]));
  return {
    find: (id) => outcomes.get(id),
    add(outcome) {
      outcomes.set(outcome.id, outcome);
      appendFileSync(JOURNAL, `${JSON.stringify(outcome)}\n`);
    },
  };
}

function createTrial(reach: Reach, limit: number): (tree: Tree, mutant: Mutant) => Promise<Outcome> {
  /** Tests that fail without an edit. Their failure proves nothing. */
  const unfit = new Set<string>();
  const callers = recordedCalls();
  const sound = new Set<string>();
  return async (tree, mutant) => {
    const { id, file, text, calls = "" } = mutant;
    const path = join(tree.folder, file);
    const original = await readFile(path);
    const isOfPage = reach.isOfPage(file);
    const tests = [...new Set([...(callers.get(calls) ?? []), ...reach.testsOf(file)])]
      .filter((test) => !unfit.has(test))
      .slice(0, limit);
    if (tests.length === 0) return { id, how: "unreached" };
    const rest = [...tests];
    while (rest.length > 0) {
      const files = rest.splice(0, rest.length === tests.length ? BATCH : BATCH * 5);
      await writeSource(tree, path, text, isOfPage);
      const told = await runTests(tree, { files, changed: path, bail: true });
      await writeSource(tree, path, original, isOfPage);
      if (told === "hung") return { id, how: "hung", tried: files };
      const [killer] = killersIn(told, files);
      if (!killer) continue;
      if (await isSound(tree, path, killer, sound))
        return { id, how: "killed", by: `${killer.file}: ${killer.name}` };
      unfit.add(killer.file);
      rest.unshift(...files.filter((each) => each !== killer.file));
    }
    return { id, how: "survived", tried: tests };
  };
}

/** Makes a copy of the program with a build, because browsers load the page from it. */
async function makeBuiltTree(): Promise<Tree> {
  const tree = await makeTree();
  await run("sh", ["script/build"], { cwd: tree.folder });
  return tree;
}

async function writeSource({ folder }: Tree, path: string, text: string | Buffer, isOfPage: boolean) {
  await writeFile(path, text);
  if (isOfPage) await run("node", ["script/page.ts"], { cwd: folder });
}

const run = promisify(execFile);

/** A file that cannot be loaded counts as failed. */
function killersIn({ failed, faults }: Told, files: readonly string[]): Failure[] {
  const [fault] = faults;
  const [file] = files;
  return failed.length > 0 || !fault || !file ? [...failed] : [{ file, name: "", why: fault }];
}

async function isSound(tree: Tree, path: string, killer: Failure, sound: Set<string>): Promise<boolean> {
  if (sound.has(killer.file)) return true;
  const told = await runTests(tree, { files: [killer.file], changed: path, bail: true });
  if (told === "hung" || told.failed.length > 0 || told.faults.length > 0) return false;
  sound.add(killer.file);
  return true;
}

function lineOf({ file, line, before, replacement }: Mutant, { how, by, tried }: Outcome): string {
  const edit = `${shown(before)} → ${shown(replacement)}`;
  const tests = how === "survived" ? `\n         tried ${(tried ?? []).join(" ")}` : "";
  return `${how.padEnd(9)} ${`${file}:${line}`.padEnd(48)} ${edit}  ${by ?? ""}${tests}`;
}

const shown = (text: string) => {
  const line = text.replace(/\s+/g, " ");
  return line.length > 70 ? `${line.slice(0, 60)} … ${line.slice(-8)}` : line;
};

function summary(outcomes: readonly Outcome[]): number {
  const count = (...wanted: Outcome["how"][]) => outcomes.filter(({ how }) => wanted.includes(how)).length;
  const killed = count("killed", "hung");
  const score = killed / outcomes.length;
  console.log(
    `\n${killed} of ${outcomes.length} killed (${(100 * score).toFixed(1)} %), of which ${count("hung")} hung; ` +
      `${count("survived")} survived, ${count("unreached")} are reached by no test`,
  );
  return score >= WANTED ? 0 : 1;
}

process.exitCode = await main();
