// The documentation of an error, to which every problem document links.

import type { ErrorCode } from "../../agent/core/errors.ts";
import { docsPage } from "../../lib/docs.ts";

const PAGE = docsPage("reference/errors.md");

/** Returns the `type` of a problem: the URL of its error code in docs/reference/errors.md. */
export const errorPage = (code: ErrorCode): string => `${PAGE}#${code}`;
