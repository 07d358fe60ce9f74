// Failures as JSON-RPC errors. What an editor shows is `message`.

import { RequestError } from "@agentclientprotocol/sdk";
import { messageOf } from "../../core/errors.ts";
import { problemOf } from "../threads/remote.ts";

const INVALID_PARAMS = -32602;
const INTERNAL = -32603;
const AUTH_REQUIRED = -32000;

/** Server refusals keep their words; `data` has code and status. */
export function requestErrorOf(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  const problem = problemOf(error);
  if (!problem) return new RequestError(INTERNAL, messageOf(error));
  const { status, code, message } = problem;
  if (status === 401)
    return new RequestError(AUTH_REQUIRED, `${message} Set SKEIN_API_KEY in the editor's settings.`, {
      code,
    });
  return new RequestError(status === 400 ? INVALID_PARAMS : INTERNAL, message, { code, status });
}

/** Of a run that has failed. */
export const runError = (code: string, message: string) => new RequestError(INTERNAL, message, { code });
