// The checks of arguments, made when a tool is first called and kept for the next run.

import { LRUCache } from "lru-cache";
import type { CompileSchema, JsonSchema, SchemaCheck } from "../../lib/untrusted-schema/index.ts";

const MAX_KEPT = 64;
const checks = new LRUCache<string, SchemaCheck>({ max: MAX_KEPT });

/** Compiles each schema once and keeps the 64 most recently used. */
export function keptChecks(compile: CompileSchema): (schema: JsonSchema) => SchemaCheck {
  return (schema) => {
    const key = JSON.stringify(schema);
    const check = checks.get(key) ?? checkOf(schema, compile);
    checks.set(key, check);
    return check;
  };
}

/** What was registered could be used then; should it no longer, then no arguments fit. */
function checkOf(schema: JsonSchema, compile: CompileSchema): SchemaCheck {
  try {
    return compile(schema);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const fault = `The tool cannot be called: its schema ${error.message}`;
    return () => [fault];
  }
}
