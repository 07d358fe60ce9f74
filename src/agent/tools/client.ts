// Tools that a front end executes. The front end defines the tools in the request for a run and sends each
// call's result with `resume`.

import {
  type JsonSchema,
  loadSchemaEngine,
  type SchemaChecker,
  type SchemaEngine,
} from "../../lib/untrusted-schema/index.ts";
import { AppError } from "../core/errors.ts";
import type { ToolCall } from "../core/message.ts";
import { askFor } from "../core/open-interrupts.ts";
import type { ClientTool } from "../core/records.ts";
import type { Stream } from "../core/stream.ts";
import { done, failed, interrupted, type Run, type Tool, type ToolResult } from "../core/tool.ts";
import { usableParameters } from "./parameters.ts";

/**
 * The maximum number of parts in the schemas of a run's tools. Checking that many parts takes about ten
 * milliseconds.
 */
const MAX_PARTS = 500;

/**
 * Validates the tools in a tenant's request. Throws `invalid_request` for two tools with the same name, and
 * for schemas that are too large in total.
 */
export async function checkClientTools(tenant: string, definitions: readonly ClientTool[]): Promise<void> {
  if (definitions.length === 0) return;
  const engine = await loadSchemaEngine();
  const names = new Set<string>();
  let parts = 0;
  for (const definition of definitions) {
    if (names.has(definition.name))
      throw new AppError(
        "invalid_request",
        `tools: two tools have the name \`${definition.name}\`; names must be unique.`,
      );
    names.add(definition.name);
    parts += await partsOf(definition, engine, tenant);
    if (parts > MAX_PARTS)
      throw new AppError(
        "invalid_request",
        `tools: the schemas up to \`${definition.name}\` have ${parts} parts; all schemas of a run may have at most ${MAX_PARTS} together.`,
      );
  }
}

/** Returns the number of parts in the tool's schema, or 0 for an unusable tool, which the run excludes. */
async function partsOf({ parameters }: ClientTool, engine: SchemaEngine, tenant: string): Promise<number> {
  const checked = await checkedBy(engine, parameters, tenant);
  return "fault" in checked ? 0 : checked.parts;
}

interface CheckedParameters {
  readonly parameters: JsonSchema;
  /** The schema for validating calls. */
  readonly schema: JsonSchema;
  readonly parts: number;
}

/** Compiles the checker of a tool. `fault` completes "its parameters …". */
async function checkedBy(
  { validate }: SchemaEngine,
  described: JsonSchema,
  tenant?: string,
): Promise<CheckedParameters | { readonly fault: string }> {
  const usable = usableParameters(described);
  if ("fault" in usable) return usable;
  const { parameters, schema } = usable;
  // The front end checks expressions that are not RE2, such as one for e-mail addresses.
  const faults: string[] = [];
  for (const candidate of [schema, withoutExpressions(schema)])
    try {
      return { parameters, schema: candidate, parts: await validate(candidate, tenant) };
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      faults.push(error.message);
    }
  return { fault: `are a schema that ${faults.at(-1)}` };
}

const withoutExpressions = (schema: JsonSchema): JsonSchema =>
  JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
    key === "pattern" && typeof value === "string" ? undefined : value,
  );

/**
 * Creates tools from definitions that `checkClientTools` accepted. The first call of a tool compiles its
 * schema.
 */
export async function createClientTools(definitions: readonly ClientTool[]): Promise<Tool[]> {
  if (definitions.length === 0) return [];
  const engine = await loadSchemaEngine();
  const tools: Tool[] = [];
  for (const definition of definitions) {
    const checked = await checkedBy(engine, definition.parameters);
    tools.push(
      "fault" in checked
        ? { ...clientTool({ ...definition, parameters: { type: "object" } }), fault: checked.fault }
        : clientTool({ ...definition, parameters: checked.parameters }, engine.checker(checked.schema)),
    );
  }
  return tools;
}

/** Creates a tool whose result arrives with `resume`, either as text or as a refusal with a reason. */
export function clientTool({ name, description, parameters }: ClientTool, checker?: SchemaChecker): Tool {
  return {
    name,
    description,
    parameters,
    annotations: { idempotent: true, requiresPermission: false },
    fromClient: true,
    prepare: async () => checker?.prepare(),
    parse(args) {
      const faults = checker?.check(args) ?? [];
      return faults.length === 0 ? { args } : { faults };
    },
    execute: (_args, call, run) => execute(call, run),
  };
}

async function* execute(call: ToolCall, run: Run): Stream<ToolResult> {
  const answer = yield* askFor({ call, kind: "tool", prompt: `Carry out \`${call.name}\`.` }, run);
  if (!answer) return interrupted();
  if (answer.decision === "respond") return done(answer.message ?? "");
  return failed(answer.message ?? "The front end did not execute the tool.");
}
