// Quotas over a store in memory, at noon.

import type { z } from "zod";
import { QuotaConfig } from "../../../src/engine/quotas/config.ts";
import { createQuotas } from "../../../src/engine/quotas/index.ts";
import { openMemoryQuotas } from "../../../src/engine/stores/sqlite/quotas.ts";

export const ADA = { tenant: "acme", user: "ada" };
export const BOB = { tenant: "acme", user: "bob" };
export const NOON = Date.parse("2026-11-30T12:00:00.000Z");

export function world(config: z.input<typeof QuotaConfig>) {
  let time = NOON;
  const store = openMemoryQuotas(() => time).quotas;
  const quotas = createQuotas(store, QuotaConfig.parse(config), { threadMs: Number.POSITIVE_INFINITY });
  const advance = (ms: number) => {
    time += ms;
  };
  return { quotas, store, advance };
}
