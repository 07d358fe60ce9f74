// Refusals from the AI SDK's routes.

import type { WireErrors } from "../refusals.ts";

/** `useChat` shows the text of a refusal to the user unchanged. */
export const ERRORS: WireErrors = { bodyOf: ({ detail }) => detail };
