// Fits arguments to the kinds of value that a tool's schema takes, for every tool, before the tool checks them.
//
// Models send `null` for a parameter that they leave out, and lists, maps, numbers and booleans as text. Both have one meaning where
// the schema takes neither. Everything else stays as the model wrote it, for the tool to judge.

import { isObject } from "../lib/json.ts";
import type { JsonSchema } from "../lib/untrusted-schema/index.ts";
import { type CallArguments, readJson } from "./call-arguments.ts";
import type { ToolCall } from "./message.ts";
import type { Tool } from "./tool.ts";

/** Maximum number of schemas to look at for one call. What lies behind them stays as it is. */
const MAX_STEPS = 20_000;
/** Maximum number of references and alternatives within each other. */
const MAX_NESTING = 16;

interface Fitting {
  readonly root: JsonSchema;
  steps: number;
}

/** The call as its tool wants it: `call` itself where nothing changes. */
export function fittedCall(call: ToolCall, tool: Pick<Tool, "parameters"> | undefined): ToolCall {
  if (!tool || call.malformed !== undefined) return call;
  const args = fittedArguments(call.args, tool.parameters);
  return args === call.args ? call : { ...call, args };
}

/** `args` itself where nothing changes. */
export function fittedArguments(args: CallArguments, parameters: JsonSchema): CallArguments {
  return fittedObject(args, [parameters], { root: parameters, steps: 0 });
}

/** `schemas` all apply to the value. */
function fittedObject(value: CallArguments, schemas: readonly unknown[], fitting: Fitting): CallArguments {
  const parts = schemas.flatMap((schema) => partsFor(schema, "object", fitting));
  const required = new Set(parts.flatMap((part) => (Array.isArray(part.required) ? part.required : [])));
  let changed: Record<string, unknown> | undefined;
  for (const [name, member] of Object.entries(value)) {
    const own = parts.flatMap((part) => propertySchema(part, name));
    if (own.length === 0) continue;
    const fit = fittedValue(member, own, fitting);
    const isLeftOut =
      fit === null && !required.has(name) && !own.every((each) => takes(each, "null", fitting));
    if (fit === member && !isLeftOut) continue;
    changed ??= { ...value };
    if (isLeftOut) delete changed[name];
    else changed[name] = fit;
  }
  return changed ?? value;
}

function propertySchema({ properties, additionalProperties }: JsonSchema, name: string): unknown[] {
  if (isObject(properties) && Object.hasOwn(properties, name)) return [properties[name]];
  return isObject(additionalProperties) ? [additionalProperties] : [];
}

function fittedValue(value: unknown, schemas: readonly unknown[], fitting: Fitting): unknown {
  const all = (kind: Kind) => schemas.every((schema) => takes(schema, kind, fitting));
  if (typeof value === "string") {
    if (all("string")) return value;
    const read = readText(value);
    if (typeof read === "string") return value;
    return read === null || all(kindOf(read)) ? fittedValue(read, schemas, fitting) : value;
  }
  if (Array.isArray(value)) return fittedList(value, schemas, fitting);
  return isObject(value) ? fittedObject(value, schemas, fitting) : value;
}

/** What a text is as JSON; the text itself where it is none. */
function readText(text: string): unknown {
  const word = text.trim();
  // As Python writes them.
  if (/^(?:True|False|None)$/.test(word)) return word === "None" ? null : word === "True";
  const read = readJson(text);
  return "value" in read ? read.value : text;
}

function fittedList(list: unknown[], schemas: readonly unknown[], fitting: Fitting): unknown[] {
  const items = schemas
    .flatMap((schema) => partsFor(schema, "array", fitting))
    .flatMap((part) => (isObject(part.items) && part.prefixItems === undefined ? [part.items] : []));
  if (items.length === 0) return list;
  const fit = list.map((item) => fittedValue(item, items, fitting));
  return fit.every((item, index) => item === list[index]) ? list : fit;
}

type Kind = "null" | "boolean" | "integer" | "number" | "string" | "array" | "object";

function kindOf(value: unknown): Kind {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value === "object" ? "object" : typeof value === "boolean" ? "boolean" : "string";
}

/** Whether `schema` takes some value of this kind. True where that cannot be told. */
function takes(schema: unknown, kind: Kind, fitting: Fitting, nesting = 0): boolean {
  if (!isObject(schema)) return schema !== false;
  if (nesting > MAX_NESTING || ++fitting.steps > MAX_STEPS) return true;
  const within = (inner: unknown) => takes(inner, kind, fitting, nesting + 1);
  const { $ref, type, nullable, enum: choice, anyOf, oneOf, allOf } = schema;
  if (kind === "null" && nullable === true) return true;
  if (type !== undefined && ![type].flat().some((each) => includes(each, kind))) return false;
  if ("const" in schema && !includes(kindOf(schema.const), kind)) return false;
  if (Array.isArray(choice) && !choice.some((each) => includes(kindOf(each), kind))) return false;
  if (typeof $ref === "string" && !within(referred($ref, fitting.root))) return false;
  if (Array.isArray(allOf) && !allOf.every(within)) return false;
  return [anyOf, oneOf].every((each) => !Array.isArray(each) || each.some(within));
}

const includes = (type: unknown, kind: Kind) => type === kind || (type === "number" && kind === "integer");

/** `schema` and the schemas in it that apply to a value of this kind; of alternatives, the only one that takes it. */
function partsFor(schema: unknown, kind: Kind, fitting: Fitting, nesting = 0): JsonSchema[] {
  if (!isObject(schema) || nesting > MAX_NESTING || ++fitting.steps > MAX_STEPS) return [];
  const { $ref, anyOf, oneOf, allOf } = schema;
  const only = [anyOf, oneOf].flatMap((each) => {
    const taking = Array.isArray(each) ? each.filter((one) => takes(one, kind, fitting)) : [];
    return taking.length === 1 ? taking : [];
  });
  const inner = [
    ...(typeof $ref === "string" ? [referred($ref, fitting.root)] : []),
    ...(Array.isArray(allOf) ? allOf : []),
    ...only,
  ];
  return [schema, ...inner.flatMap((each) => partsFor(each, kind, fitting, nesting + 1))];
}

/** The schema at a local reference such as `#/$defs/Item`; undefined for any other. */
function referred(reference: string, root: JsonSchema): unknown {
  if (!reference.startsWith("#")) return undefined;
  const steps = reference.slice(1).split("/").slice(1);
  return steps.reduce<unknown>((value, step) => {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  }, root);
}
