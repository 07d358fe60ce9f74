// Validates values against an untrusted JSON Schema (2020-12). Neither the schema nor a value can make it slow:
// expressions run in linear time, and each check has a budget of steps.
//
// `format` and other annotations are ignored, as the standard has it. Values are never changed: no defaults, no
// conversions.

import type { Ajv2020, ErrorObject } from "ajv/dist/2020.js";
import { RE2JS } from "re2js";
import { type SafeRegex, safeRegex } from "../regex.ts";
import { COST, type Cost, isObject, shapeOf, sizeOf } from "./shape.ts";

/** A schema as it is written. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** One sentence for each fault of the value, a few at most; none when it fits. */
export type SchemaCheck = (value: unknown) => string[];

/** Throws a `SyntaxError` whose message completes "The schema …". Takes milliseconds. */
export type CompileSchema = (schema: unknown) => SchemaCheck;

/** Steps of one check: a few tenths of a second in the worst case. */
const MAX_STEPS = 200_000;
/** The same while all faults are collected: each costs extra. */
const MAX_GATHERING_STEPS = 20_000;
const MAX_FAULTS = 10;

const TOO_MUCH = "It is too large or too deeply nested to be checked against its schema.";

let loading: Promise<CompileSchema> | undefined;

/** Loads the engine on first use, because that takes a tenth of a second. */
export function loadSchemaCompiler(): Promise<CompileSchema> {
  loading ??= load();
  return loading;
}

async function load(): Promise<CompileSchema> {
  const { Ajv2020 } = await import("ajv/dist/2020.js");
  const standard = new Ajv2020({ strict: false, logger: false, validateFormats: false });
  return (schema) => {
    const shape = shapeOf(schema);
    if (standard.validateSchema(shape) !== true) throw new SyntaxError(notAllowed(standard.errors));
    const check = compiled(shape, Ajv2020, { allErrors: false, limit: MAX_STEPS });
    let gather: SchemaCheck | undefined;
    return (value) => {
      const [first] = check(value);
      if (first === undefined) return [];
      gather ??= compiled(shape, Ajv2020, { allErrors: true, limit: MAX_GATHERING_STEPS });
      const all = first === TOO_MUCH ? [first] : gather(value);
      return all.includes(TOO_MUCH) ? [first] : [...new Set(all)].slice(0, MAX_FAULTS);
    };
  };
}

const COMPARISONS_PER_STEP = 16;

/** A schema needs an id to refer to itself as `#`. */
const ROOT = "schema:root";

/** Thrown when a check has used up its steps. */
const EXHAUSTED = new Error("The check takes too many steps.");

function compiled(
  shape: Readonly<Record<string, unknown>>,
  Engine: typeof Ajv2020,
  { allErrors, limit }: { allErrors: boolean; limit: number },
): SchemaCheck {
  let steps = 0;
  let size = 0;
  const spend = (cost: number) => {
    steps -= cost;
    if (steps < 0) throw EXHAUSTED;
  };
  // An engine keeps every schema it compiled, so each schema gets its own.
  const engine = new Engine({
    allErrors,
    strict: false,
    meta: false,
    validateSchema: false,
    validateFormats: false,
    inlineRefs: false,
    addUsedSchema: false,
    ownProperties: true,
    logger: false,
    // Without `optimize`, compiling is three times as fast.
    code: { regExp: expressions(spend), optimize: false },
  });
  engine.addKeyword({
    keyword: COST,
    // Before all other keywords.
    before: "$dynamicAnchor",
    schemaType: "object",
    errors: false,
    validate: (cost: Cost, data: unknown) => {
      spend(cost.steps + breadthOf(data));
      if (cost.isQuadratic && Array.isArray(data)) spend((data.length * size) / COMPARISONS_PER_STEP);
      return true;
    },
  });
  const validate = withinStack(() => engine.compile({ $id: ROOT, ...shape }), "is nested too deeply");
  return (value) => {
    size = sizeOf(value);
    steps = limit - size;
    try {
      return validate(value) ? [] : (validate.errors ?? []).map(schemaFault);
    } catch (error) {
      // Out of steps, or a stack overflow in a schema that refers to itself endlessly.
      if (error === EXHAUSTED || error instanceof RangeError) return [TOO_MUCH];
      throw error;
    } finally {
      validate.errors = null;
    }
  };
}

/** The steps for visiting each of its members. */
function breadthOf(data: unknown): number {
  if (typeof data === "string") return data.length >> 4;
  if (Array.isArray(data)) return data.length;
  return isObject(data) ? Object.keys(data).length : 0;
}

/** The steps for an expression on a text as long as its reach. */
const FULL_REACH_STEPS = 20_000;

/** The engine's regular expressions. Each use costs steps. */
function expressions(spend: (cost: number) => void) {
  const make = (pattern: string) => {
    const regex = expression(pattern);
    return {
      test(text: string) {
        spend(text.length > regex.reach ? Infinity : 1 + (text.length / regex.reach) * FULL_REACH_STEPS);
        return regex.test(text);
      },
      // The engine identifies expressions by this.
      toString: () => pattern,
    };
  };
  return Object.assign(make, { code: "new RegExp" });
}

function expression(pattern: string): SafeRegex {
  try {
    return safeRegex(RE2JS.translateRegExp(pattern));
  } catch (error) {
    throw new SyntaxError(`has the expression \`${pattern.slice(0, 100)}\`, which ${messageOf(error)}`);
  }
}

function withinStack<T>(work: () => T, fault: string): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof SyntaxError) throw error;
    throw new SyntaxError(error instanceof RangeError ? fault : `cannot be used: ${messageOf(error)}`);
  }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error)).slice(0, 300);

function notAllowed(errors: readonly ErrorObject[] | null | undefined): string {
  const sentences = (errors ?? []).map(schemaFault);
  return `is not valid JSON Schema (2020-12). ${sentences.slice(0, 3).join(" ")}`;
}

const MAX_SHOWN = 60;
const MAX_VALUES = 20;

/** A fault as a sentence for the model that wrote the value. */
export function schemaFault({ keyword, params, instancePath, message }: ErrorObject): string {
  const place = placeOf(instancePath);
  const wording = WORDINGS[keyword]?.(params) ?? (message === undefined ? "is wrong" : shown(message));
  return `${place === "" ? "It" : `\`${place}\``} ${wording}.`;
}

type Params = Readonly<Record<string, unknown>>;

const WORDINGS: Readonly<Record<string, (params: Params) => string>> = {
  required: ({ missingProperty }) => `has no \`${shown(missingProperty)}\``,
  dependentRequired: ({ property, missingProperty }) =>
    `has \`${shown(property)}\`, and so needs \`${shown(missingProperty)}\``,
  type: ({ type }) => `must be ${[type].flat().map(shown).join(" or ")}`,
  enum: ({ allowedValues }) => `must be one of ${listed(allowedValues)}`,
  const: ({ allowedValue }) => `must be ${written(allowedValue)}`,
  additionalProperties: ({ additionalProperty }) => `has an unknown key \`${shown(additionalProperty)}\``,
  uniqueItems: ({ i, j }) => `must not hold the same twice, as at ${i} and ${j}`,
  unevaluatedProperties: ({ unevaluatedProperty }) => `has an unknown key \`${shown(unevaluatedProperty)}\``,
};

/** `items[0].name` */
function placeOf(pointer: string): string {
  const steps = pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  const place = steps.map((step, depth) =>
    /^\d+$/.test(step) ? `[${step}]` : `${depth > 0 ? "." : ""}${step}`,
  );
  return shown(place.join(""));
}

function listed(values: unknown): string {
  const all: readonly unknown[] = Array.isArray(values) ? values : [];
  return all.slice(0, MAX_VALUES).map(written).join(", ") + (all.length > MAX_VALUES ? ", …" : "");
}

const written = (value: unknown) => `\`${shown(JSON.stringify(value))}\``;

function shown(value: unknown): string {
  const text = String(value).replace(/\s+/g, " ");
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
