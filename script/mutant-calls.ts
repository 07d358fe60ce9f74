// The record of which test file calls which function of src/: one line of JSON per test file. A function is known by
// its file and its offset, so a record of another version of a file is not used.

import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isArrowFunction, isBlock, type Node, type SourceFile, SyntaxKind } from "typescript/unstable/ast";
import { ROOT } from "./mutant-trees.ts";

export const CALLS = join(ROOT, "node_modules/.cache/mutant-calls.jsonl");

const FUNCTIONS = new Set([
  SyntaxKind.ArrowFunction,
  SyntaxKind.FunctionDeclaration,
  SyntaxKind.FunctionExpression,
  SyntaxKind.MethodDeclaration,
  SyntaxKind.Constructor,
  SyntaxKind.GetAccessor,
  SyntaxKind.SetAccessor,
]);

export interface Body {
  readonly start: number;
  readonly end: number;
  /** False for an expression, which has no statements. */
  readonly isBlock: boolean;
}

/** Returns the bodies of all functions, outer ones first. */
export function bodiesOf(file: SourceFile): Body[] {
  const bodies: Body[] = [];
  const visit = (node: Node): void => {
    const body = FUNCTIONS.has(node.kind) ? (node as Node & { body?: Node }).body : undefined;
    if (body)
      bodies.push({
        start: body.getStart(),
        end: body.end,
        isBlock: !isArrowFunction(node) || isBlock(body),
      });
    node.forEachChild(visit);
  };
  file.forEachChild(visit);
  return bodies;
}

/** Returns the text of the file in which each function records its calls. Lines stay as they are. */
export function withMarks(file: SourceFile, path: string): string {
  const { text } = file;
  const version = versionOf(text);
  const insertions = bodiesOf(file).flatMap(({ start, end, isBlock }) => {
    const mark = `globalThis.skeinCalled?.add("${keyOf(path, version, start)}")`;
    return isBlock
      ? [{ at: start + 1, order: 0, added: `${mark};` }]
      : [
          { at: start, order: 1, added: `(${mark}, ` },
          { at: end, order: -1, added: ")" },
        ];
  });
  // Inner bodies that end where outer ones end are closed in any order, because all are closed by the same text.
  let marked = "";
  let done = 0;
  for (const { at, added } of insertions.sort((a, b) => a.at - b.at || a.order - b.order)) {
    marked += text.slice(done, at) + added;
    done = at;
  }
  return marked + text.slice(done);
}

/**
 * Returns the test files that call each function, by the function's key. Files that call few functions come first,
 * because they take less time and test the function more closely.
 */
export function recordedCalls(): ReadonlyMap<string, readonly string[]> {
  const lines = existsSync(CALLS) ? readFileSync(CALLS, "utf8").split("\n").filter(Boolean) : [];
  const records = lines.map((line) => JSON.parse(line) as { test: string; called: string[] });
  const tests = new Map<string, string[]>();
  for (const { test, called } of records.sort((a, b) => a.called.length - b.called.length))
    for (const key of called) tests.set(key, [...(tests.get(key) ?? []), test]);
  return tests;
}

/** Identifies a function by its file, the file's version and the offset of its body. */
export const keyOf = (path: string, version: string, start: number) => `${path}@${version}:${start}`;

export const versionOf = (text: string) => createHash("sha256").update(text).digest("base64url").slice(0, 8);
