// Schemas of programs and plugins come from a copy of zod of their own, which may be another major version.

/** A clause about what is no schema of zod 4; undefined for one. */
export function zodFault(value: unknown): string | undefined {
  if (typeof value === "object" && value !== null && "_zod" in value) return undefined;
  const isOld = typeof value === "object" && value !== null && "_def" in value;
  const why = isOld ? "this is a zod 3 schema" : `this is ${kindOf(value)}`;
  return `must be a zod schema (zod 4); ${why}. Import \`z\` from "skein" or from zod 4`;
}

function kindOf(value: unknown): string {
  if (value === undefined || value === null) return "missing";
  return typeof value === "object" ? "another object, perhaps a JSON Schema" : `a ${typeof value}`;
}
