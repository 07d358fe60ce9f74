// Fills variables into a YAML tree after parsing, value by value, so their values cannot add structure. Records the
// filled values, so messages can hide them.

import { isScalar, type Node, visit } from "yaml";
import { sentence } from "../check.ts";
import { replacingAll } from "../replacer.ts";
import { interpolate, type Variables } from "./interpolate.ts";
import { type LocatedFault, pathThrough, startOf, type YamlTree } from "./tree.ts";

export interface FilledVariables {
  readonly faults: readonly LocatedFault[];
  /** Values that name a variable in the notation of another program. */
  readonly doubts: readonly LocatedFault[];
  /** True if no value has variables. */
  readonly isEmpty: boolean;
  /** Returns `filled` if a value contains variables, `missing` if one of them is not set, and `none` otherwise. */
  stateOf(node: Node | undefined): "none" | "filled" | "missing";
  /** Converts a filled value that looks like a number, `true` or `false`. Returns false for any other value. */
  retype(node: Node | undefined): boolean;
  /** Replaces the values of variables in `text` with their names. */
  mask(text: string): string;
}

/** Shorter values are not secrets and may occur in any text. */
const MIN_MASKED = 6;

/** Changes the scalars of `tree` in place. */
export function fillIn(tree: YamlTree, variables: Variables): FilledVariables {
  const faults: LocatedFault[] = [];
  const doubts: LocatedFault[] = [];
  const state = new Map<Node, "filled" | "missing">();
  const used = new Map<string, string>();
  visit(tree, {
    Scalar(key, scalar, ancestors) {
      if (key === "key" || typeof scalar.value !== "string") return;
      const doubt = foreignVariable(scalar.value);
      const path = pathThrough(ancestors, scalar);
      if (doubt) doubts.push({ offset: startOf(scalar), message: sentence({ path, message: doubt }) });
      if (!scalar.value.includes("${")) return;
      const filled = interpolate(scalar.value, variables);
      for (const message of filled.faults)
        faults.push({ offset: startOf(scalar), message: sentence({ path, message }) });
      for (const [name, value] of filled.used) if (value.length >= MIN_MASKED) used.set(value, `\${${name}}`);
      state.set(scalar, filled.faults.length > 0 ? "missing" : "filled");
      scalar.value = filled.text;
    },
  });
  return {
    faults,
    doubts,
    isEmpty: state.size === 0,
    stateOf: (node) => (node && state.get(node)) ?? "none",
    retype(node) {
      const value = isScalar(node) && state.has(node) ? typed(String(node.value)) : undefined;
      if (isScalar(node) && value !== undefined) node.value = value;
      return value !== undefined;
    },
    mask: (text) => replacingAll(used)(text),
  };
}

/**
 * `$NAME` as in shells, `%NAME%` as in Windows, and `os.environ/NAME` as in LiteLLM. Also matches after a word, as in
 * `Bearer $NAME`.
 */
const FOREIGN =
  /^(?:\w+ )?(?:\$([A-Z][A-Z0-9_]*)|\$\(([A-Z][A-Z0-9_]*)\)|%([A-Z][A-Z0-9_]*)%|os\.environ\/([A-Z][A-Z0-9_]*))$/;

function foreignVariable(text: string): string | undefined {
  const name = FOREIGN.exec(text)?.slice(1).find(Boolean);
  return (
    name && `\`${text}\` is used as a literal value; to use the environment variable, write \`\${${name}}\``
  );
}

const NUMBER = /^[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?$/i;

function typed(text: string): boolean | number | undefined {
  if (NUMBER.test(text)) return Number(text);
  return text === "true" || text === "false" ? text === "true" : undefined;
}
