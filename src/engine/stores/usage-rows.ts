// Rows of the usage tables.

import type { UsageTotals } from "../quotas/store.ts";

/** `estimated` is more than 0 if some of the numbers are estimates. */
export type Marked<U extends UsageTotals> = Omit<U, "estimated"> & { readonly estimated: number | boolean };

export const usedIn = <Row extends { readonly estimated: number | boolean }>({
  estimated,
  ...used
}: Row) => ({
  ...used,
  ...(estimated ? { estimated: true as const } : {}),
});
