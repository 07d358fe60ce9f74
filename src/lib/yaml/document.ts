// Reads a YAML configuration: fills in variables and checks it against a schema. Lists every problem as
// `file:line:column: path: fault; remedy`. Never shows values of variables or of keys that may name secrets.

import { isScalar, LineCounter, type Node, parseDocument } from "yaml";
import type { z } from "zod";
import { type Checked, checkSeldom, type Fault, sentence } from "../check.ts";
import type { Variables } from "./interpolate.ts";
import { dataOf, type LocatedFault, placeOf, treeFaults, type YamlTree } from "./tree.ts";
import { type FilledVariables, fillIn } from "./variables.ts";

export interface YamlDocument {
  /** The data with variables filled in. Undefined if the text is not valid YAML. */
  readonly data: unknown;
  /** Returns the parsed value, or every problem. */
  check<S extends z.ZodType>(schema: S): { readonly value: z.output<S> } | { readonly problems: Problem[] };
  /** Values that are probably not intended. They do not prevent the use of the document. */
  readonly doubts: readonly Problem[];
  /** Adds the position to a fault. */
  problem(fault: Fault): Problem;
  /** Formats problems as one line each, in the order of the text, without duplicates. Returns at most 100 lines. */
  linesOf(problems: readonly Problem[]): string[];
}

export type Problem = LocatedFault;

export const MAX_YAML_BYTES = 1024 * 1024;
/** The parser's own search for duplicate keys takes quadratic time, so `treeFaults` replaces it. */
const OPTIONS = {
  version: "1.2",
  merge: true,
  stringKeys: true,
  uniqueKeys: false,
  prettyErrors: false,
} as const;

const MAX_PROBLEMS = 100;

/** Never throws. `check` returns the problems. */
export function readYaml(file: string, text: string, variables: Variables): YamlDocument {
  const lines = new LineCounter();
  const tree = parseDocument(text, { ...OPTIONS, lineCounter: lines });
  const linesOf = (problems: readonly Problem[]) => {
    const ordered = problems.toSorted((a, b) => a.offset - b.offset);
    return [...new Set(ordered.map((problem) => line(file, lines, problem)))].slice(0, MAX_PROBLEMS);
  };
  const broken = treeFaults(tree, text);
  if (broken.length > 0) {
    const problem = ({ message }: Fault) => ({ offset: 0, message });
    return { data: undefined, check: () => ({ problems: broken }), doubts: [], problem, linesOf };
  }
  const filled = fillIn(tree, variables);
  return {
    get data() {
      return dataOf(tree);
    },
    check(schema) {
      const checked = checkWithTypes(schema, tree, filled);
      const faults = "faults" in checked ? checked.faults.slice(0, MAX_PROBLEMS) : [];
      const known = faults.filter(({ path }) => filled.stateOf(placeOf(tree, path).node) !== "missing");
      const problems = [...filled.faults, ...known.map((fault) => locate(fault, tree, filled))];
      return "value" in checked && problems.length === 0 ? checked : { problems };
    },
    doubts: filled.doubts,
    problem: (fault) => locate(fault, tree, filled),
    linesOf,
  };
}

function line(file: string, lines: LineCounter, { offset, message }: Problem): string {
  const { line, col } = lines.linePos(offset);
  return `${file}:${Math.max(line, 1)}:${Math.max(col, 1)}: ${message}`;
}

function locate(fault: Fault, tree: YamlTree, filled: FilledVariables): LocatedFault {
  const { node, offset, keyOffset } = placeOf(tree, fault.path);
  const message = filled.mask(sentence(fault, shown(fault, node, filled)));
  return { offset: fault.isKey || !isScalar(node) ? keyOffset : offset, message };
}

/** The values of variables are strings at first. They are converted if the schema expects a number or boolean. */
function checkWithTypes<S extends z.ZodType>(
  schema: S,
  tree: YamlTree,
  filled: FilledVariables,
): Checked<z.output<S>> {
  const first = checkSeldom(schema, dataOf(tree));
  if ("value" in first || filled.isEmpty) return first;
  const mistyped = first.faults.filter((fault) => fault.isMistyped);
  const retyped = mistyped.filter(({ path }) => filled.retype(placeOf(tree, path).node));
  return retyped.length > 0 ? checkSeldom(schema, dataOf(tree)) : first;
}

const SECRET = /key|secret|token|password|authorization/i;

/** Returns a scalar as written in the file, with variable names instead of their values. */
function shown({ path }: Fault, node: Node | undefined, filled: FilledVariables): string | undefined {
  if (!isScalar(node) || SECRET.test(String(path.at(-1)))) return undefined;
  return filled.stateOf(node) === "none" ? String(node.value) : node.source;
}
