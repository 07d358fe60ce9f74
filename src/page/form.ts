// Builds forms from JSON Schemas: the fields, and the value of the user's input. The server validates the value.

import { t } from "./texts.ts";

type Schema = Readonly<Record<string, unknown>>;

export interface Field {
  readonly name: string;
  /** The visible label. Default: the name. */
  readonly title?: string;
  readonly description?: string;
  /**
   * `long`: a text of several lines. `list`: one text per line. `pairs`: one `Name: value` per line. `time`: a time in
   * the browser's time zone. `secret`: a text that is not shown. `json`: any other type.
   */
  readonly kind: "choice" | "number" | "text" | "long" | "list" | "pairs" | "time" | "secret" | "json";
  /** The values of a choice, by the text that the form shows for each. */
  readonly choices?: ReadonlyMap<string, unknown>;
  /** The values that a text field suggests, and the meaning of each. */
  readonly suggestions?: ReadonlyMap<string, string>;
  readonly required: boolean;
  /** The default that applies when the field is empty. */
  readonly standard?: unknown;
  /** The accepted range, such as `1 to 16` or `at most 60000`. */
  readonly range?: string;
  /** True if the field is in the collapsed section below the others. */
  readonly isMore?: boolean;
}

/** The maximum number of fields. No hook has more. */
const MAX_FIELDS = 50;
/** A text that can be longer than this gets a field with several lines. */
const LONG_CHARS = 500;

/** Returns the fields of an object schema. Returns no fields for any other schema. */
export function fieldsOf(schema: unknown): Field[] {
  if (!isObject(schema) || !isObject(schema.properties)) return [];
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(schema.properties)
    .slice(0, MAX_FIELDS)
    .map(([name, property]) => fieldOf(name, isObject(property) ? property : {}, required.includes(name)));
}

function fieldOf(name: string, schema: Schema, isRequired: boolean): Field {
  const range = rangeOf(schema);
  const choices = choicesOf(schema);
  return {
    name,
    kind: choices ? "choice" : kindOf(schema),
    // A field with a default may be empty, even if the schema of the response requires it.
    required: isRequired && !("default" in schema),
    ...(typeof schema.title === "string" && schema.title.trim() !== "" && { title: schema.title }),
    ...(typeof schema.description === "string" && { description: schema.description }),
    ...("default" in schema && { standard: schema.default }),
    ...(choices && { choices }),
    ...(range && { range }),
  };
}

function kindOf({ type, items, maxLength }: Schema): Field["kind"] {
  if (type === "integer" || type === "number") return "number";
  if (type === "string") return Number(maxLength) > LONG_CHARS ? "long" : "text";
  // A duration: a number of seconds, or a text such as 10m.
  if (Array.isArray(type) && type.every((each) => each === "number" || each === "string")) return "text";
  if (type === "array" && isObject(items) && items.type === "string" && !items.enum) return "list";
  return "json";
}

function choicesOf({ type, enum: values }: Schema): ReadonlyMap<string, unknown> | undefined {
  if (type === "boolean")
    return new Map<string, unknown>([
      [t().form.yes, true],
      [t().form.no, false],
    ]);
  if (!Array.isArray(values)) return undefined;
  return new Map(values.map((value) => [typeof value === "string" ? value : JSON.stringify(value), value]));
}

function rangeOf(schema: Schema): string | undefined {
  const bound = (name: string) => {
    const value = schema[name];
    // The schema of every integer has a maximum. If none is set, it is JavaScript's largest safe integer.
    return typeof value === "number" && Math.abs(value) < Number.MAX_SAFE_INTEGER ? value : undefined;
  };
  const words = t().form;
  const [least, above] = [bound("minimum"), bound("exclusiveMinimum")];
  const [most, below] = [bound("maximum"), bound("exclusiveMaximum")];
  if (least !== undefined && most !== undefined) return words.between(least, most);
  const parts = [
    least !== undefined && words.atLeast(least),
    above !== undefined && words.moreThan(above),
    most !== undefined && words.atMost(most),
    below !== undefined && words.lessThan(below),
  ].filter((part) => part !== false);
  return parts.length > 0 ? parts.join(", ") : undefined;
}

/** Returns the text that a field shows for a value. Empty if there is no value. */
export function textOf({ choices, kind }: Field, value: unknown): string {
  if (value === undefined || value === null) return "";
  if (choices) return [...choices].find(([, each]) => each === value)?.[0] ?? "";
  if (kind === "list" && Array.isArray(value)) return value.join("\n");
  if (kind === "json") return JSON.stringify(value, null, 2);
  if (kind === "time") return localTime(String(value));
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Returns the value of a text, or undefined for an empty field. Throws `SyntaxError` for invalid JSON. */
export function valueIn(field: Field, text: string): unknown {
  if (text.trim() === "") return undefined;
  if (field.choices) return field.choices.get(text);
  if (field.kind === "list") return linesOf(text);
  if (field.kind === "pairs") return pairsOf(text);
  if (field.kind === "time") return new Date(text).toISOString();
  // The server reports an invalid number.
  if (field.kind === "number") return Number.isNaN(Number(text)) ? text : Number(text);
  return field.kind === "json" ? JSON.parse(text) : text;
}

/** Returns a time in the format of a browser field: `2026-05-04T10:00`, in the browser's time zone. */
function localTime(time: string): string {
  const at = new Date(time);
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString();
  return local.slice(0, at.getUTCSeconds() === 0 ? 16 : 19);
}

/** Returns the lines that are not empty. */
const linesOf = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

/** Throws `SyntaxError` for a line without a colon. */
function pairsOf(text: string): Record<string, string> {
  return Object.fromEntries(
    linesOf(text).map((line) => {
      const at = line.indexOf(":");
      if (at < 1) throw new SyntaxError(t().form.noColon(line));
      return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    }),
  );
}

/** Returns the server's error message for each field, by the part of its path after `prefix`. */
export function issuesOf(error: unknown, prefix = ""): ReadonlyMap<string, string> {
  const details = isObject(error) ? error.details : undefined;
  const issues = isObject(details) && Array.isArray(details.issues) ? details.issues : [];
  return new Map(
    issues.flatMap((issue): [string, string][] => {
      if (!isObject(issue) || typeof issue.path !== "string" || typeof issue.message !== "string") return [];
      if (issue.path === prefix) return [["", issue.message]];
      const isWithin = prefix === "" || issue.path.startsWith(`${prefix}.`);
      return isWithin ? [[issue.path.slice(prefix === "" ? 0 : prefix.length + 1), issue.message]] : [];
    }),
  );
}

/** Returns the error messages for a field and for parts of its value. */
export const issueAt = (issues: ReadonlyMap<string, string>, name: string): string =>
  [...issues]
    .filter(([path]) => path === name || path.startsWith(`${name}.`))
    .map(([path, message]) => (path === name ? message : `${path.slice(name.length + 1)}: ${message}`))
    .join("; ");

export const isObject = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the JSON merge patch (RFC 7396) that turns one value into another. */
export function patchFrom(before: unknown, after: unknown): unknown {
  if (!isObject(before) || !isObject(after)) return after;
  const removed = Object.keys(before).filter((name) => !(name in after));
  return Object.fromEntries([
    ...removed.map((name) => [name, null] as const),
    ...Object.entries(after).map(([name, value]) => [name, patchFrom(before[name], value)] as const),
  ]);
}
