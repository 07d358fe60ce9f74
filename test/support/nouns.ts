// What a server without schedules, triggers, webhooks and a trail has in their place.

import type { HttpServices } from "../../src/server/http/services.ts";

/** Its routes fail: for servers that a test puts together, and asks nothing of them. */
export const NO_NOUNS = {
  ...{ webhooks: {}, schedules: {}, triggers: {} },
  audit: { record() {} },
} as unknown as Pick<HttpServices, "webhooks" | "schedules" | "triggers" | "audit">;
