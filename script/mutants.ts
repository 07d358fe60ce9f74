// Holds the tests to what they promise: breaks one line of the program at a time, in a copy of it, and expects a test of
// its room to fail. The edits are in script/mutants/*.yaml. `--only <text>` runs those whose file or promise holds it;
// `--check` runs none, and fails when an edit does not fit the program.
// Exits with 1 when fewer than 95 % are killed, or when one that survives does not say why it may.

import { execFile, execFileSync } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { parse } from "yaml";
import { z } from "zod";
import { check, sentence } from "../src/lib/check.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const LISTS = join(ROOT, "script/mutants");
const WANTED = 0.95;
const WORKERS = 2;
/** For all tests of an edit together, in ms. One that blocks its process is no edit to learn from. */
const LIMIT_MS = 300_000;
/** What hangs with an edit fails, and is to do so soon. */
const PATIENCE = ["--testTimeout", "30000", "--hookTimeout", "30000", "--expect.poll.timeout", "10000"];

const OPTIONS = {
  only: { type: "string", default: "" },
  check: { type: "boolean", default: false },
} as const;

const Edit = z.strictObject({
  /** What a test that kills it holds. */
  promise: z.string(),
  /** Occurs exactly once in the file. */
  find: z.string(),
  replace: z.string(),
  /** Instead of those of the group. */
  tests: z.array(z.string()).min(1).optional(),
  /** Runs only tests whose names hold this, where a whole file takes long. */
  title: z.string().optional(),
  /** Why no test can kill it. */
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
  /** The whole file, with the edit. */
  readonly text: string;
}

interface Report {
  readonly numTotalTests: number;
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly TestFile[];
}

interface TestFile {
  readonly status: string;
  /** Why it could not be loaded. */
  readonly message: string;
  readonly assertionResults: readonly {
    readonly status: string;
    readonly fullName: string;
    readonly failureMessages: readonly string[];
  }[];
}

type Outcome = "killed" | "survived" | "explained";

async function main(): Promise<number> {
  const { values } = parseArgs({ options: OPTIONS });
  const all = await readMutants();
  if (values.check) return 0;
  const mutants = all.filter(({ file, promise }) => `${file} ${promise}`.includes(values.only));
  if (mutants.length === 0) throw new Error(`No mutant's file or promise holds \`${values.only}\`.`);

  const trees = await Promise.all(Array.from({ length: WORKERS }, copyTree));
  try {
    await checkBaseline(trees[0] ?? ROOT, mutants);
    const outcomes: Outcome[] = [];
    const rest = mutants.values();
    const workers = await Promise.allSettled(
      trees.map(async (tree) => {
        for (const mutant of rest) outcomes.push(tell(mutant, await tryOne(tree, mutant)));
      }),
    );
    for (const worker of workers) if (worker.status === "rejected") throw worker.reason;
    return summary(outcomes);
  } finally {
    // A server that the last test killed may still write its compile cache.
    const removal = { recursive: true, force: true, maxRetries: 20, retryDelay: 100 };
    await Promise.all(trees.map((tree) => rm(tree, removal)));
  }
}

/** Throws with all that is wrong with the lists: an edit that no longer fits the code is an error. */
async function readMutants(): Promise<Mutant[]> {
  const problems: string[] = [];
  const mutants: Mutant[] = [];
  for (const name of (await readdir(LISTS)).sort()) {
    const checked = check(z.array(Group), parse(await readFile(join(LISTS, name), "utf8")));
    if ("faults" in checked) {
      problems.push(...checked.faults.map((fault) => `script/mutants/${name}: ${sentence(fault)}`));
      continue;
    }
    for (const { file, tests, edits } of checked.value) {
      const text = await readFile(join(ROOT, file), "utf8");
      for (const edit of edits) {
        const made = apply({ ...edit, file, tests: edit.tests ?? tests }, text);
        if (typeof made === "string") problems.push(`script/mutants/${name}: ${file}: ${made}`);
        else mutants.push(made);
      }
    }
  }
  if (problems.length > 0) throw new Error(problems.join("\n"));
  return mutants;
}

/** Why it cannot be applied, or the mutant. */
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

/** What git knows of the project, as it is now. */
async function copyTree(): Promise<string> {
  const tree = await mkdtemp(join(tmpdir(), "skein-mutants-"));
  const options = { cwd: ROOT, encoding: "utf8" } as const;
  const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], options).trim().split("\n");
  for (const folder of new Set(files.map(dirname))) await mkdir(join(tree, folder), { recursive: true });
  for (const file of files) await cp(join(ROOT, file), join(tree, file), { verbatimSymlinks: true });
  await symlink(join(ROOT, "node_modules"), join(tree, "node_modules"));
  return tree;
}

/** Throws when a test fails without any edit: nothing could be said about those with one. */
async function checkBaseline(tree: string, mutants: readonly Mutant[]): Promise<void> {
  const files = [...new Set(mutants.flatMap(({ tests }) => tests))];
  const { testResults } = await runTests(tree, files, { options: ["--maxWorkers", String(WORKERS)] });
  const faults = testResults.flatMap(faultsOf);
  if (faults.length > 0) throw new Error(`The tests fail without any edit:\n${faults.join("\n")}`);
}

function faultsOf({ status, message, assertionResults }: TestFile): string[] {
  const failed = assertionResults.filter((each) => each.status === "failed");
  if (failed.length > 0)
    return failed.map(({ fullName, failureMessages }) => `${fullName}: ${failureMessages[0] ?? ""}`);
  return status === "passed" ? [] : [message];
}

/** Whether a test fails with it. */
async function tryOne(tree: string, mutant: Mutant): Promise<"killed" | "survived"> {
  const { file, tests, title, text } = mutant;
  const original = await readFile(join(tree, file), "utf8");
  await writeFile(join(tree, file), text);
  try {
    const options = ["--bail", "1", "--retry", "0", ...(title ? ["--testNamePattern", title] : [])];
    const report = await runTests(tree, tests, { options, timeout: LIMIT_MS });
    if (report.numFailedTests > 0) return "killed";
    if (report.numPassedTests > 0 && report.testResults.every(({ status }) => status === "passed"))
      return "survived";
    const faults = report.testResults.flatMap(faultsOf).join("\n");
    throw new Error(`${placeOf(mutant)}: no test of ${tests.join(", ")} was run. ${faults}`);
  } finally {
    await writeFile(join(tree, file), original);
  }
}

async function runTests(
  tree: string,
  files: readonly string[],
  { options, timeout = 0 }: { options: readonly string[]; timeout?: number },
): Promise<Report> {
  const output = join(tree, ".report.json");
  await rm(output, { force: true });
  const reporting = ["--reporter", "json", "--outputFile", output];
  const args = ["run", "--project", "plain", ...reporting, ...PATIENCE, ...options, ...files];
  const env = { ...process.env, NODE_COMPILE_CACHE: join(tree, ".compiled") };
  const said = await new Promise<string>((resolve) => {
    const limits = { maxBuffer: Number.POSITIVE_INFINITY, timeout, killSignal: "SIGKILL" } as const;
    const settings = { cwd: tree, env, ...limits };
    execFile(join(ROOT, "node_modules/.bin/vitest"), args, settings, (_, stdout, stderr) =>
      resolve(stdout + stderr),
    );
  });
  const text = await readFile(output, "utf8").catch(() => {
    throw new Error(`vitest ${args.join(" ")} ended without a report:\n${said}`);
  });
  return JSON.parse(text) as Report;
}

const placeOf = ({ file, line }: Mutant) => `${file}:${line}`;

function tell(mutant: Mutant, outcome: "killed" | "survived"): Outcome {
  const { promise, survives } = mutant;
  const why = outcome === "survived" && survives !== undefined ? ` (${survives})` : "";
  console.log(`${outcome.padEnd(8)} ${placeOf(mutant).padEnd(44)} ${promise}${why}`);
  return why ? "explained" : outcome;
}

function summary(outcomes: readonly Outcome[]): number {
  const count = (wanted: Outcome) => outcomes.filter((outcome) => outcome === wanted).length;
  const score = count("killed") / outcomes.length;
  console.log(
    `\n${count("killed")} of ${outcomes.length} killed (${(100 * score).toFixed(1)} %), ` +
      `${count("explained")} survive for a reason, ${count("survived")} without one`,
  );
  return score >= WANTED && count("survived") === 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
