// Context injection: text that the model is shown with every call, and that is no part of the thread.

import type { Hook } from "../../src/index.ts";

/** A block that never changes during the run stands early in the request, where the provider can cache it. */
export function context(name: string, text: string): Hook {
  const block = { id: name, text: `<${name}>\n${text}\n</${name}>`, cache: "semi" } as const;
  return {
    name: "context",
    modifyRequest: (request) => ({ ...request, system: [...request.system, block] }),
  };
}
