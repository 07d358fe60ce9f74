// Tools that a front end carries out: it defines them with the run, and brings each call's result with `resume`.

import { AppError } from "../core/errors.ts";
import type { ToolCall } from "../core/message.ts";
import { askFor } from "../core/open-interrupts.ts";
import type { ClientTool } from "../core/records.ts";
import type { Stream } from "../core/stream.ts";
import { done, failed, interrupted, type Run, type Tool, type ToolResult } from "../core/tool.ts";
import { loadSchemaCompiler } from "../lib/untrusted-schema/index.ts";

/** Throws `invalid_request` for parameters that are no JSON Schema of an object. */
export async function createClientTools(definitions: readonly ClientTool[]): Promise<Tool[]> {
  if (definitions.length === 0) return [];
  const compile = await loadSchemaCompiler();
  return definitions.map((definition) => clientTool(definition, checkOf(definition, compile)));
}

type Check = (args: Record<string, unknown>) => string[];

/** Its result comes with `resume`: a text, or a refusal with a reason. */
export function clientTool({ name, description, parameters }: ClientTool, check: Check = () => []): Tool {
  return {
    name,
    description,
    parameters,
    annotations: { idempotent: true, requiresPermission: false },
    fromClient: true,
    parse(args) {
      const faults = check(args);
      return faults.length === 0 ? { args } : { faults };
    },
    execute: (_args, call, run) => execute(call, run),
  };
}

async function* execute(call: ToolCall, run: Run): Stream<ToolResult> {
  const answer = yield* askFor({ call, kind: "tool", prompt: `Carry out \`${call.name}\`.` }, run);
  if (!answer) return interrupted();
  if (answer.decision === "respond") return done(answer.message ?? "");
  return failed(answer.message ?? "The front end did not carry it out.");
}

function checkOf(
  { name, parameters }: ClientTool,
  compile: Awaited<ReturnType<typeof loadSchemaCompiler>>,
): Check {
  if (parameters.type !== "object")
    throw new AppError("invalid_request", `tools: \`${name}\` needs parameters with "type": "object".`);
  try {
    return compile(parameters);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new AppError(
      "invalid_request",
      `tools: the parameters of \`${name}\`: the schema ${error.message}`,
    );
  }
}
