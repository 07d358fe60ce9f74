// The documentation of an error, to which every problem document links.

import type { ErrorCode } from "../../agent/core/errors.ts";

/** Begins with `homepage` of package.json. */
const PAGE = "https://github.com/skein-server/skein/blob/main/docs/reference/errors.md";

/** Returns the `type` of a problem: the address of its code in docs/reference/errors.md. */
export const errorPage = (code: ErrorCode): string => `${PAGE}#${code}`;
