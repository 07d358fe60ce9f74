// JSON Pointers (RFC 6901), such as `/items/0/name`.

import { isObject } from "./json.ts";

/** Escapes a key for use as a step of a pointer. */
export const pointerStep = (key: string): string => key.replaceAll("~", "~0").replaceAll("/", "~1");

/** Returns the keys of a pointer. */
export const stepsOf = (pointer: string): string[] =>
  pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));

/** Returns the schema at a local reference such as `#/$defs/Item`, or undefined for any other reference. */
export function referredSchema(reference: string, root: unknown): unknown {
  if (!reference.startsWith("#")) return undefined;
  return stepsOf(reference.slice(1)).reduce<unknown>(
    (value, key) => (isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined),
    root,
  );
}
