// Checks the messages of all commits after the commit that added this file: a title `area: imperative`, and a body with the
// reason. In a shallow clone, the first commit seems to add every file, so it checks the commits after that one.

import { execFileSync } from "node:child_process";

const TITLE = /^[a-z][a-z0-9/., -]*: \S.*[^.\s]$/;
const MAX_TITLE = 110;

const git = (...args: string[]) => execFileSync("git", args, { encoding: "utf8" });

interface Commit {
  hash: string;
  title: string;
  body: string;
}

function commitsAfter(first: string): Commit[] {
  const log = git("log", "--no-merges", "--format=%h%x00%s%x00%b%x01", `${first}..HEAD`);
  return log
    .split("\x01")
    .map((each) => each.trimStart())
    .filter((each) => each !== "")
    .map((each) => {
      const [hash = "", title = "", body = ""] = each.split("\0");
      return { hash, title, body: body.trim() };
    });
}

function problemsOf({ title, body }: Commit): string[] {
  const problems = [];
  if (!TITLE.test(title))
    problems.push("its title is not `area: what changes`, in lower case and without a full stop");
  if (title.length > MAX_TITLE)
    problems.push(`its title has ${title.length} characters; ${MAX_TITLE} is the most`);
  if (body === "") problems.push("it has no body: say why");
  return problems;
}

const [first] = git("log", "--diff-filter=A", "--format=%H", "-1", "--", "script/commits.ts").split("\n");
for (const commit of first ? commitsAfter(first) : [])
  for (const problem of problemsOf(commit)) {
    console.error(`Commit ${commit.hash} \`${commit.title}\`: ${problem}.`);
    process.exitCode = 1;
  }
