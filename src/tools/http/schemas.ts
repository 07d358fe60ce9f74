// The checks of arguments, made when a tool is first called and kept for the next run.

import type { CompileSchema, JsonSchema, SchemaCheck } from "../../lib/json-schema.ts";

const MAX_KEPT = 64;
const kept = new Map<string, SchemaCheck>();

/** Past 64 of them the one unused for longest is made again when it is asked for. */
export function keptChecks(compile: CompileSchema): (schema: JsonSchema) => SchemaCheck {
  return (schema) => {
    const key = JSON.stringify(schema);
    const check = kept.get(key) ?? checkOf(schema, compile);
    kept.delete(key);
    kept.set(key, check);
    const [oldest] = kept.keys();
    if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest);
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
