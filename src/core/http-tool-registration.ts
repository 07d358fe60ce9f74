// From what a tenant registers to a tool that can be kept.

import { randomBytes } from "node:crypto";
import { loadSchemaCompiler } from "../lib/json-schema.ts";
import { AppError } from "./errors.ts";
import type { HttpTool, HttpToolRegistration } from "./http-tools.ts";

const SECRET_BYTES = 32;

export interface RegistrationChecks {
  /** Whether a name is that of a tool of the server's own, for any agent. */
  isTaken(name: string): boolean;
  /** Whether no call is made to this URL, as its host has an address that is not public and not allowed. */
  isRefused(url: URL): Promise<boolean>;
}

/**
 * Throws `already_exists` for a name that is taken, `invalid_request` for parameters that are not the JSON Schema of an
 * object and for an address that is refused.
 */
export async function newHttpTool(
  registration: HttpToolRegistration,
  { isTaken, isRefused }: RegistrationChecks,
): Promise<HttpTool> {
  const { name, parameters, callback_url } = registration;
  if (isTaken(name))
    throw new AppError("already_exists", `\`${name}\` is a tool of the server itself. Choose another name.`);
  if (parameters.type !== "object")
    throw new AppError("invalid_request", 'parameters: must be a JSON Schema with "type": "object".');
  await checkSchema(parameters);
  const url = new URL(callback_url);
  if (await isRefused(url)) throw notCalled(url);
  const secret = `whsec_${randomBytes(SECRET_BYTES).toString("base64")}`;
  return { ...registration, secret, created_at: new Date().toISOString() };
}

/** Names the host only: the rest of a URL may be secret. */
function notCalled({ host }: URL): AppError {
  return new AppError(
    "invalid_request",
    `callback_url: \`${host}\` has no public address, so it would never be called. Use a public address, or have the \
operator allow this one: HTTP_TOOLS_ALLOW, or http_tools.allow in the server's configuration.`,
  );
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
