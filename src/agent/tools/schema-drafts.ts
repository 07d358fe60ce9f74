// Converts JSON Schemas of earlier drafts to draft 2020-12, without changing their meaning.

import { isObject } from "../../lib/json.ts";
import { withSoundKeywords } from "./sound-keywords.ts";

/** Keywords whose values are schemas by name, lists of schemas, and single schemas. */
export const SCHEMAS_BY_NAME = [
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
];
export const LISTS_OF_SCHEMAS = ["anyOf", "oneOf", "allOf", "prefixItems"];
export const SCHEMAS = [
  "items",
  "additionalProperties",
  "not",
  "if",
  "then",
  "else",
  "contains",
  "propertyNames",
];

/**
 * Converts a schema to the current draft. The caller has limited the nesting of `schema` to a depth that the
 * stack can handle.
 */
export function asCurrentDraft(schema: unknown): unknown {
  if (!isObject(schema)) return schema;
  const entries = Object.entries(schema).map(([keyword, value]) => [keyword, within(keyword, value)]);
  return withSoundKeywords(withLimits(withItems(Object.fromEntries(entries))));
}

function within(keyword: string, value: unknown): unknown {
  if (SCHEMAS_BY_NAME.includes(keyword) && isObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, asCurrentDraft(each)]));
  if (!LISTS_OF_SCHEMAS.includes(keyword) && !SCHEMAS.includes(keyword)) return value;
  return Array.isArray(value) ? value.map(asCurrentDraft) : asCurrentDraft(value);
}

/**
 * Converts `items`, which could be a list before draft 2020-12. Some providers require `items` in every array
 * schema.
 */
function withItems(schema: Record<string, unknown>): Record<string, unknown> {
  const { items, additionalItems, ...rest } = schema;
  if (Array.isArray(items))
    return { ...rest, prefixItems: items, items: asCurrentDraft(additionalItems ?? {}) };
  const isList = [schema.type].flat().includes("array");
  return isList && items === undefined ? { ...schema, items: {} } : schema;
}

/**
 * Converts limits. In draft 4, `exclusiveMinimum: true` meant that the value must be greater than `minimum`.
 */
function withLimits(schema: Record<string, unknown>): Record<string, unknown> {
  let { exclusiveMinimum, exclusiveMaximum, minimum, maximum, ...rest } = schema;
  if (typeof exclusiveMinimum !== "boolean" && typeof exclusiveMaximum !== "boolean") return schema;
  if (exclusiveMinimum === true) [exclusiveMinimum, minimum] = [minimum, undefined];
  if (exclusiveMaximum === true) [exclusiveMaximum, maximum] = [maximum, undefined];
  const limits = Object.entries({ minimum, maximum, exclusiveMinimum, exclusiveMaximum });
  return { ...rest, ...Object.fromEntries(limits.filter(([, limit]) => typeof limit === "number")) };
}
