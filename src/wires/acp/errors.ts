// Converts failures to JSON-RPC errors. Editors show the `message`.

import { RequestError } from "@agentclientprotocol/sdk";
import { messageOf } from "../../agent/core/errors.ts";
import { ConnectionLost, ProblemError } from "../../client/client.ts";

const INVALID_PARAMS = -32602;
const INTERNAL = -32603;
const AUTH_REQUIRED = -32000;

/**
 * Converts an error of the server at `url` to one that an editor shows. A refusal keeps its message; `data` has its code
 * and status.
 */
export function requestErrorOf(error: unknown, url: string): RequestError {
  if (error instanceof RequestError) return error;
  if (error instanceof ConnectionLost) return new RequestError(INTERNAL, `${url}: ${error.message}`);
  if (!(error instanceof ProblemError)) return new RequestError(INTERNAL, messageOf(error));
  const { status, code, message } = error;
  if (status === 401)
    return new RequestError(AUTH_REQUIRED, `${message} Set SKEIN_API_KEY in the editor's settings.`, {
      code,
    });
  return new RequestError(status === 400 ? INVALID_PARAMS : INTERNAL, message, { code, status });
}

/** Returns the error for a failed run. */
export const runError = (code: string, message: string) => new RequestError(INTERNAL, message, { code });
