// Converts the parameters of externally defined tools to a form that every provider accepts. If a provider rejected a single
// schema, all requests that offer the tool would fail.

import { isObject } from "../../lib/json.ts";
import { firstChars } from "../../lib/text.ts";
import type { JsonSchema } from "../../lib/untrusted-schema/index.ts";
import { mergedShape } from "./merged-alternatives.ts";
import { asCurrentDraft, LISTS_OF_SCHEMAS, SCHEMAS, SCHEMAS_BY_NAME } from "./schema-drafts.ts";

const MAX_CHARS = 64 * 1024;
const MAX_DEPTH = 32;
const TYPES: ReadonlySet<unknown> = new Set([
  "object",
  "array",
  "string",
  "number",
  "integer",
  "boolean",
  "null",
]);
/**
 * Keywords that providers do not accept at the top level. Calls are still validated against the whole schema.
 */
const NOT_AT_TOP = new Set([
  ...["$schema", "$id", "$ref", "anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else"],
]);
const ALTERNATIVES = ["$ref", "anyOf", "oneOf", "allOf"];
const PROPERTY = /^[A-Za-z0-9_.-]{1,64}$/;

export interface UsableParameters {
  /** The schema that models see. */
  readonly parameters: JsonSchema;
  /** The complete schema for validating calls. */
  readonly schema: JsonSchema;
}

/** Converts parameters. `fault` completes "its parameters …". */
export function usableParameters(described: unknown): UsableParameters | { readonly fault: string } {
  if (!isObject(described)) return { fault: "are not a JSON Schema" };
  if (isTooDeep(described, 0)) return { fault: `are nested more than ${MAX_DEPTH} deep` };
  const json = JSON.stringify(described, (_, value) =>
    typeof value === "string" ? value.toWellFormed() : value,
  );
  if (json.length > MAX_CHARS) return { fault: tooLong(json) };
  const { type = "object", ...rest } = asCurrentDraft(JSON.parse(json)) as Record<string, unknown>;
  if (![type].flat().includes("object")) return { fault: 'must have "type": "object"' };
  const schema = { type: "object", ...rest };
  const kept = Object.entries(schema).filter(([keyword]) => !NOT_AT_TOP.has(keyword));
  const hasAlternatives = ALTERNATIVES.some((keyword) => keyword in schema);
  const parameters = { ...Object.fromEntries(kept), ...(hasAlternatives ? merged(schema) : {}) };
  const written = hasAlternatives ? JSON.stringify(parameters) : "";
  if (written.length > MAX_CHARS) return { fault: tooLong(written) };
  const fault = faultOf(parameters) ?? propertyFault(parameters);
  return fault === undefined ? { parameters, schema } : { fault };
}

function merged(schema: JsonSchema): JsonSchema {
  const { properties, required } = mergedShape(schema);
  return { properties, ...(required.length > 0 ? { required } : {}) };
}

const tooLong = ({ length }: string) => `have ${length} characters; the maximum is ${MAX_CHARS}`;

function isTooDeep(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return depth >= MAX_DEPTH || Object.values(value).some((each) => isTooDeep(each, depth + 1));
}

function propertyFault({ properties = {} }: Record<string, unknown>): string | undefined {
  const odd = isObject(properties) && Object.keys(properties).find((name) => !PROPERTY.test(name));
  return odd
    ? `have a property name that providers do not accept: ${JSON.stringify(firstChars(odd, 64))}; use 1 to 64 characters from A-Z, a-z, 0-9, _, . and -`
    : undefined;
}

/** Returns why providers would not accept the value as a JSON Schema. */
function faultOf(schema: unknown): string | undefined {
  if (typeof schema === "boolean") return undefined;
  if (!isObject(schema)) return "contain a value that is not a JSON Schema";
  return Object.entries(schema)
    .map(([keyword, value]) => keywordFault(keyword, value))
    .find((fault) => fault !== undefined);
}

function keywordFault(keyword: string, value: unknown): string | undefined {
  const wrong = `have an invalid \`${keyword}\``;
  if (keyword === "type") return [value].flat().every((type) => TYPES.has(type)) ? undefined : wrong;
  if (keyword === "required" || keyword === "enum") {
    if (!Array.isArray(value)) return wrong;
    return keyword === "enum" || value.every((name) => typeof name === "string") ? undefined : wrong;
  }
  if (keyword === "$ref") return typeof value === "string" && value.startsWith("#") ? undefined : wrong;
  if (SCHEMAS_BY_NAME.includes(keyword)) return isObject(value) ? firstFault(Object.values(value)) : wrong;
  if (LISTS_OF_SCHEMAS.includes(keyword)) return Array.isArray(value) ? firstFault(value) : wrong;
  if (SCHEMAS.includes(keyword)) return faultOf(value);
  return undefined;
}

const firstFault = (schemas: readonly unknown[]) => schemas.map(faultOf).find((fault) => fault !== undefined);
