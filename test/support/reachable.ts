import { expect } from "vitest";
import type { Stores } from "../../src/agent/core/stores.ts";

/** Resolves once the stores answer again. */
export function reachable(stores: Stores): Promise<void> {
  const answers = () =>
    stores.ping().then(
      () => true,
      () => false,
    );
  return expect.poll(answers).toBe(true);
}
