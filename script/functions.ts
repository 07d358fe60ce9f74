// Lists the long functions in src/, longest first. The length is the number of code lines, including those of closures.
// It excludes blank lines, comment lines, and all but the first line of a text such as SQL or Lua.
//   --over 60    the minimum length to list

import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import {
  isArrowFunction,
  isFunctionDeclaration,
  isFunctionExpression,
  isIdentifier,
  isMethodDeclaration,
  isNoSubstitutionTemplateLiteral,
  isTemplateExpression,
  type Node,
  type SourceFile,
} from "typescript/unstable/ast";
import { API, type Project } from "typescript/unstable/sync";

export interface LongFunction {
  readonly name: string;
  /** The file and first line, in the format that editors open. */
  readonly at: string;
  readonly lines: number;
}

const ROOT = resolve(import.meta.dirname, "..");
const PROJECTS = ["tsconfig.json", "src/page/tsconfig.json"].map((path) => join(ROOT, path));
const GENERATED = join(ROOT, "src/client/wire.ts");
const COMMENT = /^\s*(?:\/\/|\/\*|\*(?:\s|\/|$))/;

/** Returns the functions in a folder with more than `over` lines, longest first. */
export function longFunctions(folder: string, over: number): LongFunction[] {
  const api = new API();
  try {
    const snapshot = api.updateSnapshot({ openProjects: PROJECTS });
    const found = PROJECTS.flatMap((path) => sourcesIn(snapshot.getProject(path), folder)).flatMap(
      functionsIn,
    );
    const byPlace = new Map(found.map((each) => [each.at, each]));
    return [...byPlace.values()].filter(({ lines }) => lines > over).sort((a, b) => b.lines - a.lines);
  } finally {
    api.close();
  }
}

function sourcesIn(project: Project | undefined, folder: string): SourceFile[] {
  if (!project) throw new Error("The compiler opened no project.");
  const { program } = project;
  return program
    .getSourceFileNames()
    .filter((name) => name.startsWith(join(ROOT, folder, "/")) && name !== GENERATED)
    .flatMap((name) => program.getSourceFile(name) ?? []);
}

function functionsIn(source: SourceFile): LongFunction[] {
  const lines = source.text.split("\n");
  const starts = lineStarts(lines);
  const file = relative(ROOT, source.fileName);
  const found: LongFunction[] = [];
  const linesOf = (node: Node) =>
    [lineAt(starts, node.getStart(source)), lineAt(starts, node.getEnd() - 1)] as const;
  const text = new Set<number>();
  const findTexts = (node: Node): void => {
    const [first, last] = isText(node) ? linesOf(node) : [0, 0];
    for (let line = first + 1; line <= last; line++) text.add(line);
    node.forEachChild(findTexts);
  };
  const visit = (node: Node): void => {
    if (isFunction(node)) {
      const [first, last] = linesOf(node);
      const code = lines.slice(first, last + 1).filter((_, index) => !text.has(first + index));
      found.push({ name: nameOf(node), at: `${file}:${first + 1}`, lines: linesOfCode(code) });
    }
    node.forEachChild(visit);
  };
  findTexts(source);
  visit(source);
  return found;
}

const isFunction = (node: Node) =>
  isArrowFunction(node) ||
  isFunctionDeclaration(node) ||
  isFunctionExpression(node) ||
  isMethodDeclaration(node);

const isText = (node: Node) => isNoSubstitutionTemplateLiteral(node) || isTemplateExpression(node);

/** Returns the function's own name, or the name of the variable or property that it is assigned to. */
function nameOf(node: Node): string {
  const named = [node, node.parent].find((each) => "name" in each) as { name?: Node } | undefined;
  return named?.name && isIdentifier(named.name) ? named.name.text : "(anonymous)";
}

export const linesOfCode = (lines: readonly string[]): number =>
  lines.filter((line) => line.trim() !== "" && !COMMENT.test(line)).length;

function lineStarts(lines: readonly string[]): number[] {
  let start = 0;
  return lines.map((line) => {
    const own = start;
    start += line.length + 1;
    return own;
  });
}

const lineAt = (starts: readonly number[], position: number) =>
  starts.findLastIndex((start) => start <= position);

if (import.meta.main) {
  const { values } = parseArgs({ options: { over: { type: "string", default: "60" } } });
  const found = longFunctions("src", 40);
  for (const { lines, at, name } of found.filter((each) => each.lines > Number(values.over)))
    console.log(`${String(lines).padStart(4)}  ${at}  ${name}`);
  const counts = [40, 60, 150].map((over) => found.filter(({ lines }) => lines > over).length);
  console.log(`\nOver 40 lines: ${counts[0]}, over 60: ${counts[1]}, over 150: ${counts[2]}.`);
}
