// The refusal of one HTTP tool more than a tenant may have, in the words of every store.

import { AppError } from "../core/errors.ts";
import { MAX_HTTP_TOOLS } from "../tools/http/registration.ts";

export function tooManyHttpTools(): AppError {
  return new AppError(
    "limit_exceeded",
    `There are ${MAX_HTTP_TOOLS} HTTP tools already, and no more are kept. Delete one first.`,
    { details: { limit: MAX_HTTP_TOOLS } },
  );
}
