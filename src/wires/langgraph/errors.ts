// Refusals with the fields that LangGraph's SDKs read.

import { AppError } from "../../agent/core/errors.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { WireErrors } from "../refusals.ts";

export const ERRORS: WireErrors = {
  bodyOf({ code, detail, details }, _, reply) {
    // An invalid request gets this status in this API.
    if (code === "invalid_request") reply.code(422);
    return { error: code, code, message: detail, detail, ...omitUndefined({ details }) };
  },
  noRoute: ({ url }) => new AppError("not_found", whyNot(url)),
};

function whyNot(url: string): string {
  const [path = ""] = url.split("?");
  if (path.includes("/assistants")) return "Agents are configured by the operator.";
  if (/\/threads\/[^/]+\/runs\/[^/]+$/.test(path)) return "Runs are kept with their thread.";
  return `${path} is not supported.`;
}
