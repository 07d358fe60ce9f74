// Forms out of JSON Schemas: which fields there are, and what is written in them as a value. What is valid says the server.

import { t } from "./texts.ts";

type Schema = Readonly<Record<string, unknown>>;

export interface Field {
  readonly name: string;
  /** Label that people read. Default: the name. */
  readonly title?: string;
  readonly description?: string;
  /** `long`: a text of several lines. `list`: texts, one a line. `pairs`: `Name: value`, one a line. `json`: what has no field of its own. */
  readonly kind: "choice" | "number" | "text" | "long" | "list" | "pairs" | "json";
  /** Of a choice: the values, by the texts that stand for them. */
  readonly choices?: ReadonlyMap<string, unknown>;
  readonly required: boolean;
  /** What holds when the field is empty. */
  readonly standard?: unknown;
  /** `1 to 16`, `at most 60000`: what the server accepts. */
  readonly range?: string;
}

/** More than any hook has. */
const MAX_FIELDS = 50;
/** A text that may be longer gets more than a line. */
const LONG_CHARS = 500;

/** The fields of an object's schema; none for anything else. */
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
    // With a default nothing is missing, although the schema of what is read back says so.
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
    // Schemas of whole numbers name the largest that JavaScript has.
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

/** What stands in the field for a value; empty for none. */
export function textOf({ choices, kind }: Field, value: unknown): string {
  if (value === undefined || value === null) return "";
  if (choices) return [...choices].find(([, each]) => each === value)?.[0] ?? "";
  if (kind === "list" && Array.isArray(value)) return value.join("\n");
  if (kind === "json") return JSON.stringify(value, null, 2);
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** What the text stands for; undefined for an empty field. Throws `SyntaxError` for what should be JSON and is not. */
export function valueIn(field: Field, text: string): unknown {
  if (text.trim() === "") return undefined;
  if (field.choices) return field.choices.get(text);
  if (field.kind === "list") return linesOf(text);
  if (field.kind === "pairs") return pairsOf(text);
  // The server says what is wrong with a number that is none.
  if (field.kind === "number") return Number.isNaN(Number(text)) ? text : Number(text);
  return field.kind === "json" ? JSON.parse(text) : text;
}

/** Each line that is not empty. */
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

/** What an error of the server says about each field: by the path that it names, from `prefix` on. */
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

/** What the server says about a field or what is within it. */
export const issueAt = (issues: ReadonlyMap<string, string>, name: string): string =>
  [...issues]
    .filter(([path]) => path === name || path.startsWith(`${name}.`))
    .map(([path, message]) => (path === name ? message : `${path.slice(name.length + 1)}: ${message}`))
    .join("; ");

export const isObject = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The patch (RFC 7396) that turns one value into another. */
export function patchFrom(before: unknown, after: unknown): unknown {
  if (!isObject(before) || !isObject(after)) return after;
  const removed = Object.keys(before).filter((name) => !(name in after));
  return Object.fromEntries([
    ...removed.map((name) => [name, null] as const),
    ...Object.entries(after).map(([name, value]) => [name, patchFrom(before[name], value)] as const),
  ]);
}
