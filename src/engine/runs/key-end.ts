// Why a schedule or a trigger can no longer start runs: its API key has ended.

import { type AppError, hasCode } from "../../agent/core/errors.ts";

/** Returns the reason for the user. `end` is the end of the key, which has expired or was revoked. */
export function keyEndMessage(what: "schedule" | "trigger", api_key: string, end: AppError): string {
  const how = hasCode(end, "credentials_revoked") ? "was revoked" : "has expired";
  return `The API key \`${api_key}\` of the ${what} ${how}.`;
}
