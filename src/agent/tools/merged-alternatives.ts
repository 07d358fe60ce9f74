// A schema with alternatives at its top as one object with the properties of all: providers take no alternatives there.

import { isObject } from "../../lib/json.ts";
import { referredSchema } from "../../lib/json-pointer.ts";
import type { JsonSchema } from "../../lib/untrusted-schema/index.ts";

/** Maximum number of alternatives, within each other as well. Further ones are left out. */
const MAX_MERGED = 500;

interface Shape {
  readonly properties: Readonly<Record<string, unknown>>;
  readonly required: readonly string[];
}

/** The properties that the alternatives of `schema` have, and the names that each of them requires. */
export function mergedShape(schema: JsonSchema): Shape {
  let merged = 0;
  const shapeOf = (part: unknown): Shape => {
    if (!isObject(part) || ++merged > MAX_MERGED) return NOTHING;
    const { properties, required, $ref, allOf, anyOf, oneOf } = part;
    const own = {
      properties: isObject(properties) ? properties : {},
      required: listIn(required).filter((name) => typeof name === "string"),
    };
    // `#` is the schema itself, which adds nothing.
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

/** A property that several describe differently may be as any of them describes it. */
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
