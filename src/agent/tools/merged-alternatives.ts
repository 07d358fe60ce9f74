// Merges a schema with alternatives at its top level into one object with all properties, because providers accept no
// alternatives there.

import { isObject } from "../../lib/json.ts";
import { referredSchema } from "../../lib/json-pointer.ts";
import type { JsonSchema } from "../../lib/untrusted-schema/index.ts";

/** The maximum number of alternatives, including nested ones. Further alternatives are ignored. */
const MAX_MERGED = 500;

interface Shape {
  readonly properties: Readonly<Record<string, unknown>>;
  readonly required: readonly string[];
}

/** Returns the properties in the alternatives of `schema`, and the names that every alternative requires. */
export function mergedShape(schema: JsonSchema): Shape {
  let merged = 0;
  const shapeOf = (part: unknown): Shape => {
    if (!isObject(part) || ++merged > MAX_MERGED) return NOTHING;
    const { properties, required, $ref, allOf, anyOf, oneOf } = part;
    const own = {
      properties: isObject(properties) ? properties : {},
      required: listIn(required).filter((name) => typeof name === "string"),
    };
    // `#` refers to the schema itself, which adds nothing.
    const refers = typeof $ref === "string" && $ref !== "#";
    const all = [...(refers ? [referredSchema($ref, schema)] : []), ...listIn(allOf)].map(shapeOf);
    const some = [anyOf, oneOf]
      .filter((each) => Array.isArray(each))
      .map((each) => either(each.map(shapeOf)));
    return both([own, ...all, ...some]);
  };
  return shapeOf(schema);
}

const NOTHING: Shape = { properties: {}, required: [] };
const listIn = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

function both(shapes: readonly Shape[]): Shape {
  const required = new Set(shapes.flatMap((shape) => shape.required));
  return { properties: united(shapes), required: [...required] };
}

function either(shapes: readonly Shape[]): Shape {
  const [first = NOTHING, ...others] = shapes;
  const required = first.required.filter((name) => others.every((other) => other.required.includes(name)));
  return { properties: united(shapes), required };
}

/** Merges properties. A property that several alternatives describe may match any of their schemas. */
function united(shapes: readonly Shape[]): Record<string, unknown> {
  const found = new Map<string, Map<string, unknown>>();
  for (const { properties } of shapes)
    for (const [name, schema] of Object.entries(properties)) {
      const known = found.get(name) ?? new Map<string, unknown>();
      found.set(name, known.set(JSON.stringify(schema), schema));
    }
  return Object.fromEntries(
    [...found].map(([name, schemas]) => {
      const [only, ...others] = schemas.values();
      return [name, others.length === 0 ? only : { anyOf: [only, ...others] }];
    }),
  );
}
