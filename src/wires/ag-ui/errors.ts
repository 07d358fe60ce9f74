// Refusals from AG-UI's routes, in the shape of CopilotKit's runtime.

import type { WireErrors } from "../refusals.ts";

export const ERRORS: WireErrors = { bodyOf: ({ code, detail }) => ({ error: code, message: detail }) };
