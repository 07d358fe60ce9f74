// Tools that a front end carries out: it defines them with the run, and brings each call's result with `resume`.

import { AppError } from "../core/errors.ts";
import type { ToolCall } from "../core/message.ts";
import { askFor } from "../core/open-interrupts.ts";
import type { ClientTool } from "../core/records.ts";
import type { Stream } from "../core/stream.ts";
import { done, failed, interrupted, type Run, type Tool, type ToolResult } from "../core/tool.ts";
import { ownTurn } from "../lib/async.ts";
import { loadSchemaEngine, type SchemaChecker, type SchemaEngine } from "../lib/untrusted-schema/index.ts";
import { usableParameters } from "./parameters.ts";

/** Parts of the schemas of a run's tools: some ten milliseconds of checking. */
const MAX_PARTS = 500;

/** Checks what a request of a tenant brings. Throws `invalid_request` for parameters that are no JSON Schema, and for too many. */
export async function checkClientTools(tenant: string, definitions: readonly ClientTool[]): Promise<void> {
  if (definitions.length === 0) return;
  const engine = await loadSchemaEngine();
  let parts = 0;
  for (const { name, parameters } of definitions) {
    await ownTurn(tenant);
    parts += partsOf(name, parameters, engine);
    if (parts > MAX_PARTS)
      throw new AppError(
        "invalid_request",
        `tools: the schemas up to \`${name}\` have ${parts} parts; those of a run may have at most ${MAX_PARTS} in all.`,
      );
  }
}

function partsOf(name: string, parameters: ClientTool["parameters"], engine: SchemaEngine): number {
  const usable = usableParameters(parameters);
  // A tool that cannot be used is left out of the run.
  if ("fault" in usable) return 0;
  try {
    return engine.validate(usable.schema);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new AppError(
      "invalid_request",
      `tools: the parameters of \`${name}\`: the schema ${error.message}`,
    );
  }
}

/** For definitions that `checkClientTools` accepted. A schema is compiled at the first call of its tool. */
export async function createClientTools(definitions: readonly ClientTool[]): Promise<Tool[]> {
  if (definitions.length === 0) return [];
  const { checker } = await loadSchemaEngine();
  return definitions.map((definition) => {
    const usable = usableParameters(definition.parameters);
    if ("fault" in usable)
      return { ...clientTool({ ...definition, parameters: { type: "object" } }), fault: usable.fault };
    return clientTool({ ...definition, parameters: usable.parameters }, checker(usable.schema));
  });
}

/** Its result comes with `resume`: a text, or a refusal with a reason. */
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
