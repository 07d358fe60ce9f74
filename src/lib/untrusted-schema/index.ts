// Validates values against an untrusted JSON Schema (2020-12). Neither the schema nor a value can make validation slow,
// because expressions run in linear time and each check has a budget of steps.
//
// Ignores `format` and other annotations, as the standard allows. Never changes a value by adding defaults or
// converting it.

import { createHash } from "node:crypto";
import type { Ajv2020, ErrorObject } from "ajv/dist/2020.js";
import { LRUCache } from "lru-cache";
import { RE2JS } from "re2js";
import { isObject } from "../json.ts";
import { stepsOf } from "../json-pointer.ts";
import { type SafeRegex, safeRegex } from "../regex.ts";
import { firstChars } from "../text.ts";
import { ownTick } from "../ticks.ts";
import { COST, type Cost, type Shape, shapeOf, sizeOf } from "./shape.ts";

/** A schema as written by its author. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Returns one sentence per fault of the value, up to a small number. The result is empty if the value is valid. */
export type SchemaCheck = (value: unknown) => string[];

/** Checks values against one schema. */
export interface SchemaChecker {
  /** Compiles the schema, in separate ticks of the event loop. */
  prepare(): Promise<void>;
  /**
   * Checks a value. Compiles the schema first if `prepare` was not called. If the schema is unusable, every value is
   * reported as faulty.
   */
  readonly check: SchemaCheck;
}

/** The maximum number of steps per check, about ten milliseconds in the worst case. */
const MAX_STEPS = 100_000;
/** The maximum number of steps when collecting all faults, which is slower per step. */
const MAX_GATHERING_STEPS = 20_000;
const MAX_FAULTS = 10;

const TOO_MUCH = "It is too large or too deeply nested to be checked against its schema.";

export interface SchemaEngine {
  /**
   * Checks everything about a schema that does not require compiling it, in a separate tick of the event loop. Returns
   * the number of its parts. Throws a `SyntaxError` whose message completes "The schema …".
   */
  validate(schema: unknown, tenant?: string): Promise<number>;
  /** Compiles a schema, in separate ticks of the event loop. Throws the same errors as `validate`. */
  compile(schema: JsonSchema): Promise<void>;
  /** Returns a checker without compiling anything. Equal schemas share their compiled form. */
  checker(schema: JsonSchema): SchemaChecker;
}

let loading: Promise<SchemaEngine> | undefined;

/** Loads the engine on first use, because loading takes a tenth of a second. If loading fails, the next call tries again. */
export function loadSchemaEngine(): Promise<SchemaEngine> {
  loading ??= load().catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

/** Runs all work that is slow the first time, piece by piece. It takes a tenth of a second in total. */
export async function warmUpSchemaEngine(): Promise<void> {
  const { validate, checker } = await loadSchemaEngine();
  const schema = { type: "object", properties: { text: { type: "string", pattern: "^x" } } };
  await validate(schema);
  const { prepare, check } = checker(schema);
  await prepare();
  await ownTick();
  check({ text: "" });
}

/**
 * The maximum number of cached compiled schemas, and the maximum number of parts in all of them. A part takes up to 10
 * KiB.
 */
const MAX_KEPT = { schemas: 1000, parts: 5000 };

async function load(): Promise<SchemaEngine> {
  const { Ajv2020 } = await import("ajv/dist/2020.js");
  const standard = new Ajv2020({ strict: false, logger: false, validateFormats: false });
  // One cache of the process, which needs `max` because sizes count parts.
  const kept = new LRUCache<string, CompiledSchema>({ max: MAX_KEPT.schemas, maxSize: MAX_KEPT.parts });

  const usable = (schema: unknown): Shape => {
    const shape = shapeOf(schema);
    if (standard.validateSchema(shape.schema) !== true) throw new SyntaxError(notAllowed(standard.errors));
    for (const pattern of shape.expressions) expression(pattern);
    return shape;
  };
  const compiledOnce = (schema: JsonSchema): CompiledSchema => {
    const key = createHash("sha256").update(canonical(schema)).digest("base64");
    const made = kept.get(key) ?? compiledOf(usable(schema), Ajv2020);
    kept.set(key, made, { size: made.parts });
    return made;
  };

  return {
    async validate(schema, tenant) {
      await ownTick(tenant);
      return usable(schema).parts;
    },
    async compile(schema) {
      await ownTick();
      const compiled = compiledOnce(schema);
      await ownTick();
      compiled.first();
    },
    checker(schema) {
      let found: CompiledSchema | undefined;
      const compiled = () => {
        found ??= compiledOnce(schema);
        return found;
      };
      return {
        async prepare() {
          try {
            await ownTick();
            const { first, all } = compiled();
            for (const compile of [first, all]) {
              await ownTick();
              compile();
            }
          } catch (error) {
            if (!(error instanceof SyntaxError)) throw error;
          }
        },
        check(value) {
          try {
            return faultsOf(compiled(), value);
          } catch (error) {
            if (!(error instanceof SyntaxError)) throw error;
            return [`The tool cannot be called: its schema ${error.message}`];
          }
        },
      };
    },
  };
}

interface CompiledSchema {
  readonly parts: number;
  /** Stops at the first fault. Compiled on the first call. */
  first(): SchemaCheck;
  /** Finds every fault. */
  all(): SchemaCheck;
}

function compiledOf({ schema, parts }: Shape, Engine: typeof Ajv2020): CompiledSchema {
  let [first, all]: SchemaCheck[] = [];
  return {
    parts,
    first: () => (first ??= compiled(schema, Engine, { allErrors: false, limit: MAX_STEPS })),
    all: () => (all ??= compiled(schema, Engine, { allErrors: true, limit: MAX_GATHERING_STEPS })),
  };
}

function faultsOf(compiled: CompiledSchema, value: unknown): string[] {
  const [fault] = compiled.first()(value);
  if (fault === undefined) return [];
  const all = fault === TOO_MUCH ? [fault] : compiled.all()(value);
  return all.includes(TOO_MUCH) ? [fault] : [...new Set(all)].slice(0, MAX_FAULTS);
}

/** Returns the same text for schemas that differ only in the order of their keys. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? "null";
  const members = Object.keys(value).sort();
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}

const COMPARISONS_PER_STEP = 16;

/** A schema needs an id in order to refer to itself as `#`. */
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
  // An engine never releases the schemas that it has compiled, so each schema gets its own engine.
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
    // Compiling is three times as fast without `optimize`.
    code: { regExp: expressions(spend), optimize: false },
  });
  engine.addKeyword({
    keyword: COST,
    // Checked before all other keywords.
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
      // The check has used up its steps, or a schema that refers to itself endlessly has overflowed the stack.
      if (error === EXHAUSTED || error instanceof RangeError) return [TOO_MUCH];
      throw error;
    } finally {
      validate.errors = null;
    }
  };
}

/** Returns the number of steps for visiting each member. */
function breadthOf(data: unknown): number {
  if (typeof data === "string") return data.length >> 4;
  if (Array.isArray(data)) return data.length;
  return isObject(data) ? Object.keys(data).length : 0;
}

/** The number of steps for matching an expression against the longest text that it can search. */
const FULL_REACH_STEPS = 20_000;

/** The engine's regular expressions. Every use costs steps. */
function expressions(spend: (cost: number) => void) {
  const make = (pattern: string) => {
    const regex = expression(pattern);
    return {
      test(text: string) {
        spend(text.length > regex.reach ? Infinity : 1 + (text.length / regex.reach) * FULL_REACH_STEPS);
        return regex.test(text);
      },
      // The engine uses this text to identify expressions.
      toString: () => pattern,
    };
  };
  return Object.assign(make, { code: "new RegExp" });
}

/** The maximum number of instructions in all cached expressions. */
const MAX_INSTRUCTIONS = 100_000;
const kept = new LRUCache<string, SafeRegex>({
  maxSize: MAX_INSTRUCTIONS,
  sizeCalculation: ({ size }) => size,
});

function expression(pattern: string): SafeRegex {
  try {
    const regex = kept.get(pattern) ?? safeRegex(RE2JS.translateRegExp(pattern));
    kept.set(pattern, regex);
    return regex;
  } catch (error) {
    throw new SyntaxError(`has the expression \`${firstChars(pattern, 100)}\`, which ${messageOf(error)}`);
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

const messageOf = (error: unknown) => firstChars(error instanceof Error ? error.message : String(error), 300);

function notAllowed(errors: readonly ErrorObject[] | null | undefined): string {
  const sentences = (errors ?? []).map(schemaFault);
  return `is not valid JSON Schema (2020-12). ${sentences.slice(0, 3).join(" ")}`;
}

const MAX_SHOWN = 60;
const MAX_VALUES = 20;

/** Describes a fault as a sentence for the model that wrote the value. */
export function schemaFault({ keyword, params, instancePath, message }: ErrorObject): string {
  const place = placeOf(instancePath);
  const wording = WORDINGS[keyword]?.(params) ?? (message === undefined ? "is wrong" : shown(message));
  return `${place === "" ? "It" : `\`${place}\``} ${wording}.`;
}

type Params = Readonly<Record<string, unknown>>;

const WORDINGS: Readonly<Record<string, (params: Params) => string>> = {
  required: ({ missingProperty }) => `has no \`${shown(missingProperty)}\``,
  dependentRequired: ({ property, missingProperty }) =>
    `has \`${shown(property)}\`, so it also needs \`${shown(missingProperty)}\``,
  type: ({ type }) => `must be ${[type].flat().map(shown).join(" or ")}`,
  enum: ({ allowedValues }) => `must be one of ${listed(allowedValues)}`,
  const: ({ allowedValue }) => `must be ${written(allowedValue)}`,
  additionalProperties: ({ additionalProperty }) => `has an unknown key \`${shown(additionalProperty)}\``,
  uniqueItems: ({ i, j }) => `must not contain duplicates, as at ${i} and ${j}`,
  unevaluatedProperties: ({ unevaluatedProperty }) => `has an unknown key \`${shown(unevaluatedProperty)}\``,
};

/** Converts a pointer to a path such as `items[0].name`. */
function placeOf(pointer: string): string {
  const place = stepsOf(pointer).map((step, depth) =>
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
  return text.length > MAX_SHOWN ? `${firstChars(text, MAX_SHOWN)}…` : text;
}
