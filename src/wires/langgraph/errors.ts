// Refusals with the fields that LangGraph's SDKs read.

import { AppError } from "../../agent/core/errors.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { WireErrors } from "../refusals.ts";

export const ERRORS: WireErrors = {
  bodyOf({ code, detail, details }, _, reply) {
    // LangGraph's API uses this status for an invalid request.
    if (code === "invalid_request") reply.code(422);
    return { error: code, code, message: detail, detail, ...omitUndefined({ details }) };
  },
  noRoute: ({ url }) => new AppError("not_found", whyNot(url)),
};

function whyNot(url: string): string {
  const [path = ""] = url.split("?");
  if (path.includes("/assistants")) return "Only the operator can configure agents.";
  if (/\/threads\/[^/]+\/runs\/[^/]+$/.test(path))
    return "Runs cannot be changed or deleted on their own. Delete their thread instead.";
  return `${path} is not supported.`;
}
