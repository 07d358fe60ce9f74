// The arguments of a tool call as its model wrote them, read in one place for all providers: strictly, then leniently.

import { isNestedDeeper, isObject, jsonSize } from "../../lib/json.ts";
import { readJsonValues } from "../../lib/lenient-json.ts";

/** Maximum nesting: every reader of the thread walks through the arguments. */
export const MAX_ARGUMENT_DEPTH = 64;
/** Maximum number of keys and values: checking them against a schema takes one tick of the event loop. */
const MAX_ENTRIES = 20_000;

export type CallArguments = Record<string, unknown>;

/**
 * Returns the arguments, or a `fault` that completes "The arguments …". Blank text, `null`, `None`, `undefined` and empty lists mean no
 * arguments. Proxies write an empty object first, or all arguments twice; some models write the object as a JSON string.
 */
export function readArguments(text: string): { args: CallArguments } | { fault: string } {
  if (NO_ARGUMENTS.has(text.trim())) return { args: {} };
  const read = readJson(text);
  if ("fault" in read) return read;
  const { value } = read;
  if (isObject(value)) return { args: value };
  if (isNothing(value)) return { args: {} };
  if (typeof value !== "string") return { fault: `are ${kindOf(value)}, not a JSON object` };
  const inner = readJson(value);
  if ("value" in inner && isObject(inner.value)) return { args: inner.value };
  return { fault: "are a text, not a JSON object" };
}

/** As a server writes a missing value of its own language. */
const NO_ARGUMENTS: ReadonlySet<string> = new Set(["", "None", "undefined"]);

/** Why a call's arguments could not be read; completes "The arguments …". */
export function argumentsFault(malformed: string): string {
  const read = readArguments(malformed);
  return "fault" in read ? read.fault : "are missing: the reply ended before them";
}

/**
 * The arguments of the calls that a server has joined to one: two different objects or more. Undefined for any other text. Equal ones
 * are one call, written again.
 */
export function joinedArguments(text: string): CallArguments[] | undefined {
  const read = readValues(text);
  if ("fault" in read || read.values.length < 2) return undefined;
  return read.values.every(isObject) ? read.values : undefined;
}

/** Reads one value, which may be written twice or behind empty ones. The `fault` completes "The arguments …". */
export function readJson(text: string): { value: unknown } | { fault: string } {
  const read = readValues(text);
  if ("fault" in read) return read;
  const [value, ...others] = read.values;
  if (others.length === 0) return { value };
  return { fault: `hold ${read.values.length} different JSON values, not one JSON object for one call` };
}

/** The different values of a text, without empty ones if there are several. */
function readValues(text: string): { values: unknown[] } | { fault: string } {
  // Each key or value takes a character at least.
  if (text.length > MAX_ENTRIES) {
    const { entries } = jsonSize(Buffer.from(text));
    if (entries > MAX_ENTRIES)
      return { fault: `have ${entries} keys and values; the maximum is ${MAX_ENTRIES}` };
  }
  let values: unknown[];
  try {
    values = readJsonValues(text);
  } catch (error) {
    return { fault: `are not valid JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
  if (isNestedDeeper(values, MAX_ARGUMENT_DEPTH + 1))
    return { fault: `are nested more than ${MAX_ARGUMENT_DEPTH} deep` };
  return { values: distinct(values.length > 1 ? values.filter((each) => !isNothing(each)) : values) };
}

function distinct(values: readonly unknown[]): unknown[] {
  if (values.length < 2) return [...values];
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
}

const isNothing = (value: unknown) =>
  value === undefined ||
  value === null ||
  value === "" ||
  (typeof value === "object" && Object.keys(value).length === 0);

const kindOf = (value: unknown) => (Array.isArray(value) ? "a list" : `a ${typeof value}`);
