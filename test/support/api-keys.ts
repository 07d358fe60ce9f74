// API keys in memory, gone with the test.

import { createApiKeys } from "../../src/http/auth/api-keys.ts";
import { createMemoryStores } from "../../src/stores/memory/index.ts";

export const memoryApiKeys = (now: () => number = Date.now) =>
  createApiKeys(createMemoryStores({ now }).documents);
