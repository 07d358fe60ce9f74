// The changes in the next release. Each is a file in `.changeset`, in the format of the tool changesets.
//   check     compares each file with that format
//   release   moves the files into CHANGELOG.md below a new version, and sets the version of the packages

import { globSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const LEVELS = ["patch", "minor", "major"] as const;
type Level = (typeof LEVELS)[number];

interface Changeset {
  file: string;
  level: Level;
  text: string;
}

const FORM = /^---\n"skein": (\w+)\n---\n\n([\s\S]*)$/;
const MAX_LINES = 3;

/** Returns the change, or the error in its file. */
function read(file: string): Changeset | string {
  const [, named, rest = ""] = FORM.exec(readFileSync(file, "utf8")) ?? [];
  const text = rest.trimEnd();
  const level = LEVELS.find((each) => each === named);
  if (named === undefined)
    return 'it does not begin with the lines `---`, `"skein": patch`, `---` and an empty one';
  if (!level) return `\`${named}\` is no level; write patch, minor or major`;
  if (!/^\*\*[^*\n]+\*\*/.test(text))
    return "its text does not begin with the change in bold: `**Runs can be paused**: …`";
  if (text.split("\n").length > MAX_LINES) return `its text has more than ${MAX_LINES} lines`;
  return { file, level, text };
}

/** Returns the files of the folder by name. Throws for an invalid file. */
function changesets(): Changeset[] {
  const files = globSync(".changeset/*.md").filter((file) => file !== ".changeset/README.md");
  const found = files.toSorted().map((file) => ({ file, read: read(file) }));
  const problems = found.filter((each) => typeof each.read === "string");
  if (problems.length > 0) throw new Error(problems.map(({ file, read }) => `${file}: ${read}.`).join("\n"));
  return found.map(({ read }) => read).filter((each) => typeof each !== "string");
}

/** Before 1.0, a minor release may break stable behaviour, so `major` raises the minor number (VERSIONING.md). */
function nextVersion(version: string, levels: readonly Level[]): string {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  const level = LEVELS.findLast((each) => levels.includes(each)) ?? "patch";
  if (level === "major" && major > 0) return `${major + 1}.0.0`;
  return level === "patch" ? `${major}.${minor}.${patch + 1}` : `${major}.${minor + 1}.0`;
}

/** Returns the changelog section of a version, with the most important changes first. */
function sectionOf(version: string, changes: readonly Changeset[]): string {
  const lines = LEVELS.toReversed().flatMap((level) =>
    changes.filter((each) => each.level === level).map(({ text }) => `- ${text.replaceAll("\n", "\n  ")}`),
  );
  return `## ${version}\n\n${lines.join("\n")}\n`;
}

function release(): void {
  const changes = changesets();
  if (changes.length === 0) throw new Error("There is nothing to release: `.changeset` has no change.");
  const { version } = JSON.parse(readFileSync("package.json", "utf8"));
  const next = nextVersion(
    version,
    changes.map(({ level }) => level),
  );
  const log = readFileSync("CHANGELOG.md", "utf8");
  const end = log.search(/^## /m);
  if (end < 0) throw new Error("CHANGELOG.md has no section `## <version>` to insert the new one above.");
  writeFileSync("CHANGELOG.md", `${log.slice(0, end)}${sectionOf(next, changes)}\n${log.slice(end)}`);
  for (const { file } of changes) rmSync(file);
  for (const file of ["package.json", "packages/client/package.json"])
    edit(file, (manifest) => {
      manifest.version = next;
    });
  edit("package-lock.json", (lock) => {
    lock.version = next;
    for (const name of ["", "packages/client"]) {
      const entry = lock.packages[name];
      if (entry) entry.version = next;
    }
  });
}

interface Manifest {
  version: string;
  packages: Record<string, { version: string }>;
}

/** Changes one of npm's files, keeping npm's formatting. */
function edit(file: string, change: (content: Manifest) => void): void {
  const content = JSON.parse(readFileSync(file, "utf8"));
  change(content);
  writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`);
}

const [command] = process.argv.slice(2);
try {
  if (command === "check") changesets();
  else if (command === "release") release();
  else throw new Error("Usage: changesets.ts check | release");
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
