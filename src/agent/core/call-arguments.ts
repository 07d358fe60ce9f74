// Reads the arguments of a tool call for all providers: strictly first, then leniently.

import { isNestedDeeper, isObject, jsonSize } from "../../lib/json.ts";
import { readJsonValues } from "../../lib/lenient-json.ts";

/** The maximum nesting. Every reader of the thread recurses into the arguments. */
export const MAX_ARGUMENT_DEPTH = 64;
/** The maximum number of keys and values. Validating more would block the event loop for too long. */
const MAX_ENTRIES = 20_000;

export type CallArguments = Record<string, unknown>;

/**
 * Returns the arguments, or a `fault` that completes "The arguments …". Blank text, `null`, `None`,
 * `undefined` and empty lists mean no arguments. Some proxies send an empty object before the arguments, or send them
 * twice, and some models send the object as a JSON string. All of these are accepted.
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
  return { fault: "are text, not a JSON object" };
}

/** Spellings of a missing value that servers write in their own programming language. */
const NO_ARGUMENTS: ReadonlySet<string> = new Set(["", "None", "undefined"]);

/** Explains why a call's arguments could not be read. The result completes "The arguments …". */
export function argumentsFault(malformed: string): string {
  const read = readArguments(malformed);
  return "fault" in read ? read.fault : "are missing: the reply ended before them";
}

/**
 * Separates the arguments of several calls that a server joined into one. Returns two or more different
 * objects, or undefined for any other string. Equal objects count as a single call that was written twice.
 */
export function joinedArguments(text: string): CallArguments[] | undefined {
  const read = readValues(text);
  if ("fault" in read || read.values.length < 2) return undefined;
  return read.values.every(isObject) ? read.values : undefined;
}

/**
 * Reads one JSON value. Accepts a value that is repeated or that follows empty values. A `fault` completes
 * "The arguments …".
 */
export function readJson(text: string): { value: unknown } | { fault: string } {
  const read = readValues(text);
  if ("fault" in read) return read;
  const [value, ...others] = read.values;
  if (others.length === 0) return { value };
  return { fault: `contain ${read.values.length} different JSON values, not one JSON object for one call` };
}

/** Returns the different values in `text`. Skips empty values if `text` contains several values. */
function readValues(text: string): { values: unknown[] } | { fault: string } {
  // A shorter text cannot contain too many, because each key or value needs at least one character.
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
