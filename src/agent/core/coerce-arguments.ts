// Coerces the arguments of every tool call to the types in the tool's schema, before the tool validates them.
//
// Models send `null` or blank text for an omitted parameter. They send lists, maps, numbers and booleans as text, and whole
// numbers, booleans and maps where text is expected. Each of these values can mean only one thing if the schema does not accept
// the value as written. All other values stay unchanged for the tool to validate.

import { isObject } from "../../lib/json.ts";
import { referredSchema } from "../../lib/json-pointer.ts";
import type { JsonSchema } from "../../lib/untrusted-schema/index.ts";
import { type CallArguments, readJson } from "./call-arguments.ts";
import type { ToolCall } from "./message.ts";
import type { Tool } from "./tool.ts";

/** The maximum number of schemas to visit for one call. Values beyond the limit stay unchanged. */
const MAX_STEPS = 20_000;
/** The maximum nesting of references and alternatives. */
const MAX_NESTING = 16;

interface Coercion {
  readonly root: JsonSchema;
  steps: number;
}

/** Returns the call with its arguments coerced to the tool's types, or `call` itself if nothing changes. */
export function coerceCall(call: ToolCall, tool: Pick<Tool, "parameters"> | undefined): ToolCall {
  if (!tool || call.malformed !== undefined) return call;
  const args = coerceArguments(call.args, tool.parameters);
  return args === call.args ? call : { ...call, args };
}

/** Returns `args` itself if nothing changes. */
export function coerceArguments(args: CallArguments, parameters: JsonSchema): CallArguments {
  return coerceObject(args, [parameters], { root: parameters, steps: 0 });
}

/** Coerces an object that all `schemas` apply to. */
function coerceObject(value: CallArguments, schemas: readonly unknown[], coercion: Coercion): CallArguments {
  const parts = schemas.flatMap((schema) => partsFor(schema, "object", coercion));
  const required = new Set(parts.flatMap((part) => (Array.isArray(part.required) ? part.required : [])));
  let changed: Record<string, unknown> | undefined;
  for (const [name, member] of Object.entries(value)) {
    const own = parts.flatMap((part) => propertySchema(part, name));
    if (own.length === 0) continue;
    const fit = coerceValue(member, own, coercion);
    const isLeftOut = !required.has(name) && isNoValue(fit, own, coercion);
    if (fit === member && !isLeftOut) continue;
    changed ??= { ...value };
    if (isLeftOut) delete changed[name];
    else changed[name] = fit;
  }
  return changed ?? value;
}

/** True if `value` is `null` or blank text that the schemas do not accept. */
function isNoValue(value: unknown, schemas: readonly unknown[], coercion: Coercion): boolean {
  const all = (kind: Kind) => schemas.every((schema) => takes(schema, kind, coercion));
  if (value === null) return !all("null");
  if (typeof value !== "string" || value.trim() !== "") return false;
  return !all("string") || schemas.some((schema) => refusesBlank(schema, value, coercion));
}

const refusesBlank = (schema: unknown, text: string, coercion: Coercion) =>
  partsFor(schema, "string", coercion).some(
    ({ minLength, enum: choices }) =>
      (text === "" && typeof minLength === "number" && minLength > 0) ||
      (Array.isArray(choices) && !choices.includes(text)),
  );

function propertySchema({ properties, additionalProperties }: JsonSchema, name: string): unknown[] {
  if (isObject(properties) && Object.hasOwn(properties, name)) return [properties[name]];
  return isObject(additionalProperties) ? [additionalProperties] : [];
}

function coerceValue(value: unknown, schemas: readonly unknown[], coercion: Coercion): unknown {
  const all = (kind: Kind) => schemas.every((schema) => takes(schema, kind, coercion));
  if (typeof value === "string") {
    if (all("string")) return value;
    const read = readText(value);
    if (typeof read === "string") return value;
    return read === null || all(kindOf(read)) ? coerceValue(read, schemas, coercion) : value;
  }
  if (value !== null && all("string") && !all(kindOf(value))) return asText(value);
  if (Array.isArray(value)) return coerceList(value, schemas, coercion);
  return isObject(value) ? coerceObject(value, schemas, coercion) : value;
}

/**
 * Converts a map, or a list of maps, to JSON text, because the model probably meant the content of a JSON
 * file. Leaves other lists unchanged because their meaning is unclear.
 */
function asText(value: unknown): unknown {
  if (Array.isArray(value) ? value.length > 0 && value.every(isObject) : isObject(value))
    return JSON.stringify(value, null, 2);
  // Converting other numbers could lose digits that the model wrote.
  return Number.isSafeInteger(value) || typeof value === "boolean" ? String(value) : value;
}

/** Parses a string as JSON. Returns the string itself if it is not JSON. */
function readText(text: string): unknown {
  const word = text.trim();
  // Python spells these values this way.
  if (/^(?:True|False|None)$/.test(word)) return word === "None" ? null : word === "True";
  const read = readJson(text);
  return "value" in read ? read.value : text;
}

function coerceList(list: unknown[], schemas: readonly unknown[], coercion: Coercion): unknown[] {
  const items = schemas
    .flatMap((schema) => partsFor(schema, "array", coercion))
    .flatMap((part) => (isObject(part.items) && part.prefixItems === undefined ? [part.items] : []));
  if (items.length === 0) return list;
  const fit = list.map((item) => coerceValue(item, items, coercion));
  return fit.every((item, index) => item === list[index]) ? list : fit;
}

type Kind = "null" | "boolean" | "integer" | "number" | "string" | "array" | "object";

function kindOf(value: unknown): Kind {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value === "object" ? "object" : typeof value === "boolean" ? "boolean" : "string";
}

/** True if `schema` accepts some value of this kind, or if that cannot be determined. */
function takes(schema: unknown, kind: Kind, coercion: Coercion, nesting = 0): boolean {
  if (!isObject(schema)) return schema !== false;
  if (nesting > MAX_NESTING || ++coercion.steps > MAX_STEPS) return true;
  const within = (inner: unknown) => takes(inner, kind, coercion, nesting + 1);
  const { $ref, type, nullable, enum: choice, anyOf, oneOf, allOf } = schema;
  if (kind === "null" && nullable === true) return true;
  if (type !== undefined && ![type].flat().some((each) => includes(each, kind))) return false;
  if ("const" in schema && !includes(kindOf(schema.const), kind)) return false;
  if (Array.isArray(choice) && !choice.some((each) => includes(kindOf(each), kind))) return false;
  if (typeof $ref === "string" && !within(referredSchema($ref, coercion.root))) return false;
  if (Array.isArray(allOf) && !allOf.every(within)) return false;
  return [anyOf, oneOf].every((each) => !Array.isArray(each) || each.some(within));
}

const includes = (type: unknown, kind: Kind) => type === kind || (type === "number" && kind === "integer");

/**
 * Returns `schema` and its subschemas that apply to a value of this kind. Follows alternatives only if
 * exactly one accepts the kind.
 */
function partsFor(schema: unknown, kind: Kind, coercion: Coercion, nesting = 0): JsonSchema[] {
  if (!isObject(schema) || nesting > MAX_NESTING || ++coercion.steps > MAX_STEPS) return [];
  const { $ref, anyOf, oneOf, allOf } = schema;
  const only = [anyOf, oneOf].flatMap((each) => {
    const taking = Array.isArray(each) ? each.filter((one) => takes(one, kind, coercion)) : [];
    return taking.length === 1 ? taking : [];
  });
  const inner = [
    ...(typeof $ref === "string" ? [referredSchema($ref, coercion.root)] : []),
    ...(Array.isArray(allOf) ? allOf : []),
    ...only,
  ];
  return [schema, ...inner.flatMap((each) => partsFor(each, kind, coercion, nesting + 1))];
}
