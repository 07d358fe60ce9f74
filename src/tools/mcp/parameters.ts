// The parameters of a server's tool, made fit for every model provider: one that a provider refuses would
// fail each run of each agent that is offered the tool.

import type { JsonSchema } from "../../lib/untrusted-schema/index.ts";

const MAX_CHARS = 64 * 1024;
const MAX_DEPTH = 32;
const TYPES: ReadonlySet<unknown> = new Set([
  ...["object", "array", "string", "number", "integer", "boolean", "null"],
]);
/** Providers take none of these at the top. The server holds the arguments against its own schema anyway. */
const NOT_AT_TOP = [
  "$schema",
  "$id",
  "anyOf",
  "oneOf",
  "allOf",
  "not",
  "enum",
  "const",
  "if",
  "then",
  "else",
];
const PROPERTY = /^[A-Za-z0-9_.-]{1,64}$/;

/** `fault` completes "its parameters …". */
export function usableParameters(schema: unknown): { parameters: JsonSchema } | { fault: string } {
  if (!isObject(schema)) return { fault: "are no JSON Schema" };
  if (isTooDeep(schema, 0)) return { fault: `are nested more than ${MAX_DEPTH} deep` };
  const json = JSON.stringify(schema, (_, value) =>
    typeof value === "string" ? value.toWellFormed() : value,
  );
  if (json.length > MAX_CHARS) return { fault: `have ${json.length} characters; ${MAX_CHARS} are the most` };
  const { type = "object", ...rest }: Record<string, unknown> = JSON.parse(json);
  if (type !== "object") return { fault: "must be of type `object`" };
  const kept = Object.entries(rest).filter(([keyword]) => !NOT_AT_TOP.includes(keyword));
  const parameters = { type, ...Object.fromEntries(kept) };
  const fault = faultOf(parameters) ?? propertyFault(parameters);
  return fault === undefined ? { parameters } : { fault };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function isTooDeep(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return depth >= MAX_DEPTH || Object.values(value).some((each) => isTooDeep(each, depth + 1));
}

function propertyFault({ properties = {} }: Record<string, unknown>): string | undefined {
  const odd = isObject(properties) && Object.keys(properties).find((name) => !PROPERTY.test(name));
  return odd ? `have a name that models cannot be shown: ${JSON.stringify(odd.slice(0, 64))}` : undefined;
}

const SCHEMAS_BY_NAME = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
const LISTS_OF_SCHEMAS = ["anyOf", "oneOf", "allOf", "prefixItems"];
const SCHEMAS = ["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"];

/** What makes it no JSON Schema, as far as providers look at it. */
function faultOf(schema: unknown): string | undefined {
  if (typeof schema === "boolean") return undefined;
  if (!isObject(schema)) return "hold something that is no JSON Schema";
  return Object.entries(schema)
    .map(([keyword, value]) => keywordFault(keyword, value))
    .find((fault) => fault !== undefined);
}

function keywordFault(keyword: string, value: unknown): string | undefined {
  const wrong = `have a wrong \`${keyword}\``;
  if (keyword === "type") return [value].flat().every((type) => TYPES.has(type)) ? undefined : wrong;
  if (keyword === "required" || keyword === "enum") {
    if (!Array.isArray(value)) return wrong;
    return keyword === "enum" || value.every((name) => typeof name === "string") ? undefined : wrong;
  }
  if (keyword === "$ref") return typeof value === "string" && value.startsWith("#") ? undefined : wrong;
  if (SCHEMAS_BY_NAME.includes(keyword)) return isObject(value) ? firstFault(Object.values(value)) : wrong;
  if (LISTS_OF_SCHEMAS.includes(keyword)) return Array.isArray(value) ? firstFault(value) : wrong;
  // Before 2020 `items` could be a list of them.
  if (SCHEMAS.includes(keyword)) return firstFault([value].flat());
  return undefined;
}

const firstFault = (schemas: readonly unknown[]) => schemas.map(faultOf).find((fault) => fault !== undefined);
