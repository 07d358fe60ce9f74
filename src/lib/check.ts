// Checks a value against a zod schema and describes every fault and its remedy for an operator. Messages never repeat a
// value from the checked data.

import { z } from "zod";
import type { PausingContext } from "./bounded-schemas.ts";
import { didYouMean } from "./did-you-mean.ts";
import { firstChars } from "./text.ts";

type Path = readonly PropertyKey[];

export interface Fault {
  readonly path: Path;
  /** A clause about the value at `path`, for example "must be a string", "is missing: …" or "unknown key …". */
  readonly message: string;
  /** Present if the key itself is wrong rather than its value. */
  readonly isKey?: true;
  /** Present if the value has the wrong type. */
  readonly isMistyped?: true;
}

export type Checked<T> = { readonly value: T } | { readonly faults: readonly Fault[] };

export function check<S extends z.ZodType>(schema: S, value: unknown): Checked<z.output<S>> {
  return checked(schema.safeParse(value, REPORT));
}

/** Like `check`, for schemas that are rarely used, such as settings. */
export function checkSeldom<S extends z.ZodType>(schema: S, value: unknown): Checked<z.output<S>> {
  return checked(schema.safeParse(value, { ...REPORT, ...SELDOM }));
}

/**
 * For rarely used schemas. On the first use of each map, zod would compile code, which takes longer than dozens of
 * uses.
 */
export const SELDOM = { jitless: true } as const;

/** Like `check`, but for long values, whose bounded lists yield ticks of the event loop to other work. */
export async function checkInTicks<S extends z.ZodType>(
  schema: S,
  value: unknown,
  tenant: string,
): Promise<Checked<z.output<S>>> {
  const context: PausingContext = { ...REPORT, tenant };
  return checked(await schema.safeParseAsync(value, context));
}

function checked<T>(result: z.ZodSafeParseResult<T>): Checked<T> {
  if (result.success) return { value: result.data };
  return { faults: result.error.issues.flatMap((issue) => faultsOf(issue, [])) };
}

type Issue = z.core.$ZodIssue;
type RawIssue = z.core.$ZodRawIssue;

/** Returns one line for each of the first unknown keys, and one line for any other issue. */
function wording(issue: RawIssue): string | undefined {
  const message = WORDINGS[issue.code]?.(issue);
  if (message === undefined || issue.code === "unrecognized_keys") return message;
  return emptiness(issue.input) + message;
}

const REPORT = { error: wording, reportInput: true } as const;

const emptiness = (input: unknown) =>
  input === undefined ? "is missing: " : input === null ? "is empty: " : "";

const WORDINGS: Readonly<Record<string, (issue: RawIssue) => string | undefined>> = {
  invalid_type: (issue) => `must be ${kindOf(String(issue.expected))}${example(issue)}`,
  invalid_value: (issue) => oneOf(listOf(issue.values), issue.input),
  unrecognized_keys: (issue) =>
    listOf(issue.keys)
      .slice(0, MAX_UNKNOWN_KEYS)
      .map((key) => unknownKey(String(key), issue.inst))
      .join("\n"),
  invalid_union: (issue) => unionWording(issue),
  invalid_format: (issue) =>
    issue.format === "url" ? "must be a URL, such as https://example.com" : undefined,
  too_small: (issue) => sizeWording(issue, issue.inclusive ? "at least" : "more than", issue.minimum),
  too_big: (issue) => sizeWording(issue, issue.inclusive ? "at most" : "less than", issue.maximum),
};

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const KINDS: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a map",
  record: "a map",
};
const kindOf = (expected: string) => KINDS[expected] ?? expected;

/** Suggests a correction for a value of the wrong type, if the value shows what was meant. */
function example({ input, inst }: RawIssue): string {
  if (Array.isArray(input)) return ", not a list";
  if (typeof input !== "string") return "";
  if (inst instanceof z.ZodObject) return shorthandFor(inst.shape, input);
  if (!(inst instanceof z.ZodDiscriminatedUnion)) return "";
  const { discriminator } = inst.def;
  const isNamed = mapsIn(inst).some(({ shape }) => accepts(shape[discriminator], input));
  return isNamed ? `: write { ${discriminator}: ${input} }` : "";
}

/**
 * Returns the map that a text was probably meant to abbreviate. The map contains either the only key that accepts the
 * text or the only required key.
 */
function shorthandFor(shape: Shape, text: string): string {
  const takes = (schema: unknown, value: unknown) =>
    schema instanceof z.ZodType && schema.safeParse(value, SELDOM).success;
  const keys = Object.keys(shape);
  const taking = keys.filter((key) => takes(shape[key], text));
  if (taking.length === 1) return `: write { ${taking[0]}: … }`;
  const required = keys.filter((key) => !takes(shape[key], undefined));
  const [only = ""] = required;
  return required.length === 1 && takes(shape[only], [text]) ? `: write { ${only}: [ … ] }` : "";
}

const accepts = (schema: unknown, value: string) =>
  schema instanceof z.ZodLiteral && schema.values.has(value);

function oneOf(values: readonly unknown[], input: unknown): string {
  const names = values.map((value) => `\`${String(value)}\``);
  const which = names.length === 1 ? names[0] : `one of ${names.join(", ")}`;
  return `must be ${which}${didYouMean(input, values.map(String))}`;
}

const MAX_KEYS_SHOWN = 20;
/** The maximum number of unknown keys reported per map. Each is compared with all known keys. */
const MAX_UNKNOWN_KEYS = 20;

function unknownKey(key: string, schema: unknown): string {
  const shape: Shape = schema instanceof z.ZodObject ? schema.shape : {};
  const known = Object.keys(shape);
  const hint = didYouMean(key, known) || belonging(key, shape);
  const shown = known.slice(0, MAX_KEYS_SHOWN).join(", ") + (known.length > MAX_KEYS_SHOWN ? ", …" : "");
  return `unknown key \`${shortened(key)}\`${hint || (known.length > 0 ? `; use one of ${shown}` : "")}`;
}

type Shape = Readonly<Record<string, unknown>>;

/** Finds a key that belongs one level deeper than where it was written. */
function belonging(key: string, shape: Shape): string {
  const place = Object.keys(shape).find((name) => mapsIn(shape[name]).some((map) => key in map.shape));
  return place === undefined ? "" : `; it belongs in \`${place}: { …, ${key}: … }\``;
}

/** Returns the maps among the types that a value can have. */
function mapsIn(schema: unknown): z.ZodObject[] {
  if (schema instanceof z.ZodObject) return [schema];
  if (schema instanceof z.ZodUnion) return schema.options.flatMap(mapsIn);
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)
    return mapsIn(schema.def.innerType);
  return schema instanceof z.ZodPipe ? mapsIn(schema.def.in) : [];
}

/** Only for discriminated unions. Other unions report the faults of one member. */
function unionWording({ discriminator, options, input }: RawIssue): string | undefined {
  if (typeof discriminator !== "string") return undefined;
  if (typeof input !== "object" || input === null) return undefined;
  const given: unknown = Reflect.get(input, discriminator);
  return emptiness(given) + oneOf(listOf(options), given);
}

function sizeWording({ origin }: RawIssue, bound: string, size: unknown): string | undefined {
  if (origin === "string") return size === 1 ? "must not be empty" : `must have ${bound} ${size} characters`;
  if (origin === "array") return `must have ${bound} ${size} ${size === 1 ? "entry" : "entries"}`;
  return origin === "number" || origin === "int" ? `must be ${bound} ${size}` : undefined;
}

function faultsOf(issue: Issue, parent: Path): Fault[] {
  const path = [...parent, ...issue.path];
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.message
        .split("\n")
        .map((message, index) => ({ path: [...path, issue.keys[index] ?? ""], message, isKey: true }));
    case "invalid_key":
      return issue.issues.map(({ message }) => ({ path, message, isKey: true }));
    case "invalid_union":
      return issue.errors.length > 0 && issue.message === ANY_UNION
        ? memberFaults(issue.errors, path, issue.input)
        : [{ path, message: issue.message, isMistyped: true }];
    default:
      return [{ path, message: issue.message, ...(MISTYPED.has(issue.code) ? { isMistyped: true } : {}) }];
  }
}

/** The default message of a union. */
const ANY_UNION = "Invalid input";

const MISTYPED: ReadonlySet<string> = new Set(["invalid_type", "invalid_value"]);

/**
 * Returns the faults of the most likely member, which is the one with the fewest faults among the members with the
 * value's type.
 */
function memberFaults(members: readonly (readonly Issue[])[], path: Path, input: unknown): Fault[] {
  const fitting = members.filter((issues) => !issues.some(isOfOtherType)).sort((a, b) => a.length - b.length);
  const meant = fitting[0];
  if (meant) return meant.flatMap((issue) => faultsOf(issue, path));
  const kinds = new Set(members.flat().filter(isOfOtherType).flatMap(kindsOf));
  return [{ path, message: `${emptiness(input)}must be ${[...kinds].join(", or ")}`, isMistyped: true }];
}

function isOfOtherType(issue: Issue): boolean {
  if (issue.path.length > 0) return false;
  if (issue.code !== "invalid_union") return MISTYPED.has(issue.code);
  return issue.errors.length > 0 && issue.errors.every((issues) => issues.some(isOfOtherType));
}

function kindsOf(issue: Issue): string[] {
  if (issue.code === "invalid_type") return [kindOf(issue.expected)];
  if (issue.code === "invalid_union") return issue.errors.flat().filter(isOfOtherType).flatMap(kindsOf);
  return issue.code === "invalid_value" ? issue.values.map((value) => `\`${String(value)}\``) : [];
}

const MAX_SHOWN = 60;

/** Returns the fault as one line. `value` is the value as written, if it may be shown. */
export function sentence({ path, message, isKey }: Fault, value?: string): string {
  const place = joined(isKey ? path.slice(0, -1) : path);
  const subject = isKey ? String(path.at(-1)) : value;
  const shown = subject !== undefined && message.startsWith("must ") ? `\`${shortened(subject)}\` ` : "";
  return oneLine(`${place && `${place}: `}${shown}${message}`);
}

const oneLine = (text: string) => text.replace(/\s+/g, " ");

/** Hides the credentials in URLs. */
function shortened(text: string): string {
  const line = oneLine(text).replace(/\/\/.*@/, "//…@");
  return line.length > MAX_SHOWN ? `${firstChars(line, MAX_SHOWN)}…` : line;
}

/** Joins a path, for example to `agents.coder.tools[0]`. */
function joined(path: Path): string {
  return path
    .map((step, depth) => (typeof step === "number" ? `[${step}]` : `${depth > 0 ? "." : ""}${String(step)}`))
    .join("");
}
