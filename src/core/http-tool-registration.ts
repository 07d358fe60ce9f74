// From what a tenant registers to a tool that can be kept.

import { randomBytes } from "node:crypto";
import { loadSchemaCompiler } from "../lib/json-schema.ts";
import { AppError } from "./errors.ts";
import type { HttpTool, HttpToolRegistration } from "./http-tools.ts";

const SECRET_BYTES = 32;

/**
 * `isTaken` tells whether a name is that of a tool of the server's own, for any agent. Throws `already_exists` for
 * such a name, `invalid_request` for parameters that are no JSON Schema of an object.
 */
export async function newHttpTool(
  registration: HttpToolRegistration,
  isTaken: (name: string) => boolean,
): Promise<HttpTool> {
  const { name, parameters } = registration;
  if (isTaken(name))
    throw new AppError("already_exists", `\`${name}\` is a tool of the server itself. Choose another name.`);
  if (parameters.type !== "object")
    throw new AppError("invalid_request", 'parameters: must be a JSON Schema with "type": "object".');
  await checkSchema(parameters);
  const secret = `whsec_${randomBytes(SECRET_BYTES).toString("base64")}`;
  return { ...registration, secret, created_at: new Date().toISOString() };
}

async function checkSchema(parameters: Record<string, unknown>): Promise<void> {
  const compile = await loadSchemaCompiler();
  try {
    compile(parameters);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new AppError("invalid_request", `parameters: the schema ${error.message}`);
  }
}
