// Context injection: adds a text to every model call without adding it to the thread.

import type { Hook } from "../../src/index.ts";

/** A text that never changes during the run belongs at the beginning of the request, where the provider can cache it. */
export function context(name: string, text: string): Hook {
  const block = { id: name, text: `<${name}>\n${text}\n</${name}>`, cache: "semi" } as const;
  return {
    name: "context",
    modifyRequest: (request) => ({ ...request, system: [...request.system, block] }),
  };
}
