// API keys in memory, gone with the test.

import { createMemoryStores } from "../../src/engine/stores/memory/index.ts";
import { createApiKeys } from "../../src/server/auth/api-keys.ts";

export const memoryApiKeys = (now: () => number = Date.now) =>
  createApiKeys(createMemoryStores({ now }).documents);
