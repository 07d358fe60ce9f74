// Leaves out of a schema what stands for nothing in the language of a server: `null` for an empty list of Go, `[]` for an empty map of
// PHP. Providers that check schemas refuse a request that holds one.

/** These hold any value. */
const ANY: ReadonlySet<string> = new Set(["const", "default"]);
const MAPS: ReadonlySet<string> = new Set(["properties", "patternProperties", "$defs", "definitions"]);

/** One schema, without those in it. */
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
