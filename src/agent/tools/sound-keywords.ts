// Removes empty placeholders of programming languages from a schema, such as Go's `null` for an empty list or PHP's `[]` for an
// empty map. Providers that validate schemas reject requests that contain them.

/** Keywords that accept any value. */
const ANY: ReadonlySet<string> = new Set(["const", "default"]);
const MAPS: ReadonlySet<string> = new Set(["properties", "patternProperties", "$defs", "definitions"]);

/** Cleans one schema, but not the schemas inside it. */
export function withSoundKeywords(schema: Record<string, unknown>): Record<string, unknown> {
  const kept = Object.entries(schema).filter(
    ([keyword, value]) => ANY.has(keyword) || !isNothing(keyword, value),
  );
  return Object.fromEntries(
    kept.map(([keyword, value]) => [keyword, keyword === "required" ? once(value) : value]),
  );
}

const isNothing = (keyword: string, value: unknown) =>
  value === null || (MAPS.has(keyword) && Array.isArray(value) && value.length === 0);

const once = (names: unknown) => (Array.isArray(names) ? [...new Set<unknown>(names)] : names);
