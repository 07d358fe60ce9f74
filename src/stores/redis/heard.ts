// What came on a channel. Another version of this program may say what this one does not know, and whoever else may
// publish there, anything.

import type { z } from "zod";

/** Undefined for what is not a `schema` in JSON. */
export function heard<T>(schema: z.ZodType<T>, text: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
