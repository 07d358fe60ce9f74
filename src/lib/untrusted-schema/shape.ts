// Prepares an untrusted JSON Schema for compilation. Limits its size, allows only references within the schema, and
// marks every part with the cost of checking a value against it.

import { isObject } from "../json.ts";
import { pointerStep } from "../json-pointer.ts";
import { firstChars } from "../text.ts";

/** The keyword that marks a schema with its cost. */
export const COST = "$cost";

export interface Cost {
  /** The number of steps for any value. */
  readonly steps: number;
  /** True if every pair of members is compared. */
  readonly isQuadratic: boolean;
}

const MAX_BYTES = 64 * 1024;
const MAX_DEPTH = 32;
/** The maximum number of values of all kinds in the whole schema. */
const MAX_NODES = 5000;
/**
 * The maximum number of subschemas, including the parts that expressions count as. Compiling one takes a tenth of a
 * millisecond.
 */
const MAX_PARTS = 200;

/**
 * The kind of content of each keyword: a schema, a list or map of schemas, or plain data. Other keywords are ignored.
 */
const KEYWORDS: Readonly<Record<string, "schema" | "list" | "map" | "data">> = {
  ...kinds("schema", "additionalProperties propertyNames items contains not if then else"),
  ...kinds("schema", "unevaluatedItems unevaluatedProperties"),
  ...kinds("list", "allOf anyOf oneOf prefixItems"),
  ...kinds("map", "properties patternProperties dependentSchemas $defs definitions"),
  ...kinds("data", "$ref type nullable enum const required dependentRequired pattern uniqueItems multipleOf"),
  ...kinds("data", "maximum minimum exclusiveMaximum exclusiveMinimum maxLength minLength maxItems minItems"),
  ...kinds("data", "maxContains minContains maxProperties minProperties"),
};

function kinds<K extends string>(kind: K, names: string): Record<string, K> {
  return Object.fromEntries(names.split(" ").map((name) => [name, kind]));
}

const REFUSED: ReadonlySet<string> = new Set([
  "$anchor",
  "$dynamicRef",
  "$dynamicAnchor",
  "$recursiveRef",
  "$recursiveAnchor",
]);

export interface Shape {
  /** A copy of the schema with cost marks, without annotations such as `format`. */
  readonly schema: Readonly<Record<string, unknown>>;
  readonly parts: number;
  readonly expressions: readonly string[];
}

/** Throws a `SyntaxError` whose message completes "The schema …". */
export function shapeOf(schema: unknown): Shape {
  if (!isObject(schema)) throw new SyntaxError("must be an object");
  const { $id: _, ...root } = schema; // only other schemas could refer to it
  countNodes(root);
  const bytes = Buffer.byteLength(JSON.stringify(root));
  if (bytes > MAX_BYTES) throw new SyntaxError(`has ${bytes} bytes; at most ${MAX_BYTES} are allowed`);
  const parts: Parts = { places: new Set(), references: [], expressions: new Set() };
  const copy = copied(root, "#", parts);
  const expressions = [...parts.expressions];
  const count = parts.places.size + expressions.reduce((sum, each) => sum + partsOf(each), 0);
  if (count > MAX_PARTS) {
    const each = expressions.length > 0 ? "; each expression counts as one or more" : "";
    throw new SyntaxError(`has ${count} parts; at most ${MAX_PARTS} are allowed${each}`);
  }
  const loose = parts.references.find((reference) => !parts.places.has(decoded(reference)));
  if (loose !== undefined)
    throw new SyntaxError(`refers to \`${firstChars(loose, 100)}\`, which it does not define`);
  return { schema: copy, parts: count, expressions };
}

/** Returns the cost of compiling an expression, in parts. Unicode classes and repetitions are expensive. */
function partsOf(expression: string): number {
  const classes = expression.match(/\\p/gi)?.length ?? 0;
  const repeated =
    expression.match(/\{\d+|,\d+/g)?.reduce((sum, each) => sum + Number(each.slice(1)), 0) ?? 0;
  return 1 + classes + Math.ceil(expression.length / 100) + Math.ceil(repeated / 250);
}

interface Parts {
  /** The locations of subschemas, in the notation of references. */
  readonly places: Set<string>;
  readonly references: string[];
  readonly expressions: Set<string>;
}

/** Throws if there are too many values or levels. Must run before any other traversal. */
function countNodes(root: unknown): void {
  let nodes = 0;
  const visit = (value: unknown, depth: number): void => {
    if (++nodes > MAX_NODES) throw new SyntaxError(`has more than ${MAX_NODES} values`);
    if (depth > MAX_DEPTH) throw new SyntaxError(`is nested more than ${MAX_DEPTH} deep`);
    if (typeof value !== "object" || value === null) return;
    if (Object.hasOwn(value, "__proto__")) throw new SyntaxError("has a key `__proto__`");
    for (const each of Object.values(value)) visit(each, depth + 1);
  };
  visit(root, 0);
}

function copied(schema: Readonly<Record<string, unknown>>, place: string, parts: Parts) {
  parts.places.add(place);
  const copy: Record<string, unknown> = {};
  let steps = 1;
  for (const [key, value] of Object.entries(schema)) {
    if (REFUSED.has(key) || key === "$id")
      throw new SyntaxError(`uses \`${key}\`; use \`$defs\` and \`$ref\``);
    const kind = Object.hasOwn(KEYWORDS, key) ? KEYWORDS[key] : undefined;
    if (kind === undefined) continue;
    copy[key] = kind === "data" ? value : copiedParts(kind, value, `${place}/${key}`, parts);
    steps += kind === "data" ? sizeOf(value) : Object.keys(Object(value)).length;
    if (key === "$ref") parts.references.push(String(value));
    if (key === "pattern" && typeof value === "string") parts.expressions.add(value);
    if (key === "patternProperties" && isObject(value))
      for (const expression of Object.keys(value)) parts.expressions.add(expression);
  }
  return { ...copy, [COST]: { steps, isQuadratic: schema.uniqueItems === true } satisfies Cost };
}

/** Copies a value of the wrong form unchanged, because the engine will refuse it. */
function copiedParts(kind: "schema" | "list" | "map", value: unknown, place: string, parts: Parts): unknown {
  const part = (each: unknown, at: string): unknown => {
    if (isObject(each)) return copied(each, at, parts);
    parts.places.add(at);
    return each;
  };
  if (kind === "schema") return part(value, place);
  if (Array.isArray(value)) return value.map((each, index) => part(each, `${place}/${index}`));
  if (kind === "list" || !isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, part(each, `${place}/${pointerStep(key)}`)]),
  );
}

/** Returns the number of values within a value, including itself. */
export function sizeOf(value: unknown): number {
  let size = 0;
  const waiting = [value];
  while (waiting.length > 0) {
    const next = waiting.pop();
    size++;
    if (typeof next === "object" && next !== null) for (const each of Object.values(next)) waiting.push(each);
  }
  return size;
}

function decoded(reference: string): string {
  try {
    return decodeURIComponent(reference);
  } catch {
    return reference;
  }
}
