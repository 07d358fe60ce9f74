// Refusals of AG-UI's routes, as CopilotKit's runtime words them.

import type { WireErrors } from "../refusals.ts";

export const ERRORS: WireErrors = { bodyOf: ({ code, detail }) => ({ error: code, message: detail }) };
