// Finds faults in the nodes of a YAML document, and their positions in the text.

import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  type ParsedNode,
  visit,
  type YAMLError,
  type YAMLMap,
} from "yaml";
import { isObject } from "../json.ts";

export type YamlTree = Document.Parsed<ParsedNode>;
export type DataPath = readonly PropertyKey[];

export interface LocatedFault {
  /** The number of characters from the beginning of the text. */
  readonly offset: number;
  readonly message: string;
}

const MAX_ALIASES = 50;
const UNQUOTED = `a variable inside \`{ }\` or \`[ ]\` must be in quotes: "\${NAME}"`;
const TOO_DEEP = "nested too deeply; no configuration needs that";

/**
 * Returns plain data, without the top-level keys that begin with `x-`, which contain values for references (`*name`,
 * `<<`). Throws if there are `treeFaults`.
 */
export function dataOf(tree: YamlTree): unknown {
  const data: unknown = tree.toJS({ maxAliasCount: MAX_ALIASES });
  if (!isObject(data)) return data;
  return Object.fromEntries(Object.entries(data).filter(([key]) => !key.startsWith("x-")));
}

/** Returns faults that a schema cannot detect: bad syntax, tags, aliases and keys. */
export function treeFaults(tree: YamlTree, text: string): LocatedFault[] {
  const deeper = new Set(
    tree.errors.filter(({ code }) => code === DEEPER).map(({ pos: [offset] }) => offset),
  );
  const syntax = [...tree.errors, ...tree.warnings].map((error) => syntaxFault(error, text, deeper));
  // If there is such a fault, reports only this one, because it makes the parser report errors that do not exist.
  const confusing = syntax.find(({ message }) => message === TOO_DEEP || message === UNQUOTED);
  if (syntax.length > 0) return confusing ? [confusing] : syntax;
  const nodes = nodeFaults(tree);
  return nodes.length > 0 ? nodes : expansionFaults(tree);
}

/** The parser's code for a line indented deeper than its sibling keys, and for a second `: ` in a line. */
const NESTED = "BLOCK_AS_IMPLICIT_KEY";
/** The parser's code for a line indented deeper than the previous one. */
const DEEPER = "MULTILINE_IMPLICIT_KEY";
/** The parser's message for a line that is indented less. */
const LESS_DEEP = /^All (?:mapping|sequence) items must start at the same column/;
const MISINDENTED = "the indentation is wrong: keys of one map must begin in the same column";

/** `deeper` contains the positions of lines indented deeper than their sibling keys. */
function syntaxFault(
  { code, message, pos: [offset] }: YAMLError,
  text: string,
  deeper: ReadonlySet<number>,
): LocatedFault {
  if (text.startsWith("${", offset - 1)) return { offset, message: UNQUOTED };
  if (code === "RESOURCE_EXHAUSTION") return { offset, message: TOO_DEEP };
  if (code === "MULTIPLE_DOCS") return { offset, message: "a second document begins here; write only one" };
  if (code === NESTED && !deeper.has(offset))
    return { offset, message: "a text with `: ` in it must be in quotes" };
  if (code === NESTED || code === DEEPER) return { offset, message: MISINDENTED };
  if (LESS_DEEP.test(message)) return lessDeep(offset, text);
  return { offset, message: message.replace(/\s+/g, " ") };
}

function lessDeep(offset: number, text: string): LocatedFault {
  const [blank = "", key = ""] = /^\s*([^\s:]*)/.exec(text.slice(offset, offset + 200)) ?? [];
  const at = offset + blank.length - key.length;
  return { offset: at, message: key ? `${MISINDENTED}, and \`${key}\` does not` : MISINDENTED };
}

function nodeFaults(tree: YamlTree): LocatedFault[] {
  const faults: LocatedFault[] = [];
  const anchors = new Map<string, Node>();
  visit(tree, (_, node, ancestors) => {
    if (isMap(node)) faults.push(...keyFaults(node));
    if (isAlias(node)) {
      const message = aliasFault(node.source, anchors.get(node.source), ancestors);
      if (message) faults.push({ offset: startOf(node), message });
    } else if (isNode(node) && node.anchor) anchors.set(node.anchor, node);
  });
  return faults;
}

function keyFaults(map: YAMLMap): LocatedFault[] {
  const seen = new Set<unknown>(["__proto__"]);
  return map.items.flatMap(({ key, value }) => {
    const name = isScalar(key) ? nameOf(key.value) : key;
    if (!seen.has(name)) {
      seen.add(name);
      const isWrong = name === MERGE && !isMergeable(value);
      return isWrong ? [{ offset: startOf(key), message: NOT_MERGEABLE }] : [];
    }
    const message =
      name === "__proto__"
        ? "`__proto__` cannot be a key; choose another name"
        : `duplicate key \`${name}\`; keep one of them`;
    return [{ offset: startOf(key), message }];
  });
}

const MERGE = "<<";
const NOT_MERGEABLE = "`<<` takes a map or a list of maps, such as `<<: *name` for a map marked `&name`";

/** The parser has a symbol for `<<`. */
const nameOf = (value: unknown) => (typeof value === "symbol" ? value.description : value);

function isMergeable(value: unknown): boolean {
  if (isSeq(value)) return value.items.every((each) => !isSeq(each) && isMergeable(each));
  return isMap(value) || isAlias(value);
}

function aliasFault(
  name: string,
  target: Node | undefined,
  ancestors: readonly unknown[],
): string | undefined {
  if (!target) return `there is no anchor \`&${name}\` before this alias`;
  return ancestors.includes(target) ? `the alias \`*${name}\` contains itself` : undefined;
}

function expansionFaults(tree: YamlTree): LocatedFault[] {
  try {
    dataOf(tree);
    return [];
  } catch {
    return [{ offset: 0, message: "the aliases (`*name`) multiply too much; write out what they stand for" }];
  }
}

export interface YamlLocation {
  /** The value, if there is one. */
  readonly node: Node | undefined;
  /** The position of the value, or of its nearest existing ancestor. */
  readonly offset: number;
  /** The position of the value's key, or of the value itself if it has no key. */
  readonly keyOffset: number;
}

export function placeOf(tree: YamlTree, path: DataPath): YamlLocation {
  let node: unknown = tree.contents;
  let place: YamlLocation = { node: followed(node, tree), offset: startOf(node), keyOffset: startOf(node) };
  for (const step of path) {
    const parent = place.node;
    if (isMap(parent)) {
      const pair = pairOf(parent, step, tree);
      if (!pair) return { ...place, offset: place.keyOffset, node: undefined };
      node = pair.value;
      place = { node: followed(node, tree), offset: startOf(node), keyOffset: startOf(pair.key) };
    } else if (isSeq(parent) && parent.items[Number(step)]) {
      node = parent.items[Number(step)];
      place = { node: followed(node, tree), offset: startOf(node), keyOffset: startOf(node) };
    } else return { ...place, offset: place.keyOffset, node: undefined };
  }
  return place;
}

/** Returns the pair of a key in a map, or in the first merged map that contains it. */
function pairOf(map: YAMLMap, step: PropertyKey, tree: YamlTree): Pair | undefined {
  const own = map.items.find(({ key }) => isScalar(key) && key.value === step);
  if (own) return own;
  const merged = map.items.find(({ key }) => isScalar(key) && nameOf(key.value) === MERGE)?.value;
  for (const each of isSeq(merged) ? merged.items : [merged]) {
    const source = followed(each, tree);
    const pair = isMap(source) ? pairOf(source, step, tree) : undefined;
    if (pair) return pair;
  }
  return undefined;
}

const followed = (node: unknown, tree: YamlTree): Node | undefined =>
  isAlias(node) ? node.resolve(tree) : isNode(node) ? node : undefined;

export const startOf = (node: unknown): number => (isNode(node) ? (node.range?.[0] ?? 0) : 0);

/** Returns the keys and indexes from the outermost of `ancestors` to `node`. */
export function pathThrough(ancestors: readonly unknown[], node: unknown): DataPath {
  return ancestors.flatMap<PropertyKey>((parent, depth) => {
    if (isPair(parent) && isScalar(parent.key)) return [String(parent.key.value)];
    return isSeq(parent) ? [parent.items.indexOf(ancestors[depth + 1] ?? node)] : [];
  });
}
