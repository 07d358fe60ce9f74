// Document versions, sent as `ETag`. A write that names its base version does not overwrite any other version.

import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { preconditionIn } from "./file-versions.ts";

/** Loose, because the validated object replaces `request.headers`. */
export const IfMatch = z.looseObject({
  "if-match": z
    .string()
    .max(1024)
    .optional()
    .describe("`ETag` from an earlier response: write only if nothing has changed since."),
});

export const etagOf = (version: string) => `"${version}"`;

/**
 * Returns a function that throws `precondition_failed` for any version that `If-Match` does not name. Undefined means
 * that the document does not exist.
 */
export function expectedIn(headers: IncomingHttpHeaders): (version: string | undefined) => void {
  const { "if-match": match } = headers;
  const expected = match === undefined ? undefined : preconditionIn({ "if-match": match })?.match;
  return (version) => {
    if (expected === undefined) return;
    if (version !== undefined && (expected === "any" || expected.has(etagOf(version)))) return;
    const now = version === undefined ? "It does not exist." : "It is no longer the version in `If-Match`.";
    throw new AppError("precondition_failed", `${now} Nothing was written. Read it again, then decide.`);
  };
}
