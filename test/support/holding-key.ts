// A key of the vault that makes a process wait in the moment in which it stores tokens.

import { randomBytes } from "node:crypto";
import type { KeyWrapper } from "../../src/agent/core/key-wrapper.ts";
import { localWrapper } from "../../src/engine/vault/cipher.ts";

/** It waits to protect those secrets that `isHeld` chooses by their context. */
export function holdingKey(isHeld: (context: string) => boolean) {
  const [held, hold] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const own = localWrapper(randomBytes(32).toString("base64"));
  const vaultKey: KeyWrapper = {
    ...own,
    async wrap(key, context) {
      if (isHeld(context)) {
        held.resolve();
        await hold.promise;
      }
      return own.wrap(key, context);
    },
  };
  return { plugins: [{ name: "keys", vaultKey }], held: held.promise, release: hold.resolve };
}
