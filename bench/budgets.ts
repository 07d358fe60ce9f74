// The limit for each figure on each store. A scenario's row names its figure. Figures without a budget are only
// displayed.

import type { Row } from "./rig.ts";
import { median } from "./stats.ts";
import type { Limit } from "./table.ts";
import { STORES, type Store } from "./targets.ts";

/** The maximum for the ratio to the relay, or for this server's own value. */
interface Budget {
  readonly of: "ratio" | "skein";
  readonly most: number;
}

const ratio = (most: number): Budget => ({ of: "ratio", most });
const value = (most: number): Budget => ({ of: "skein", most });

type Budgets = Partial<Record<Store, Budget>>;
const everywhere = (budget: Budget): Budgets => Object.fromEntries(STORES.map((store) => [store, budget]));

const BUDGETS = {
  burst: { memory: ratio(1.3), sqlite: ratio(1.5), redis: ratio(1.5) },
  "first event in a burst": { ...everywhere(ratio(3)), memory: ratio(1.5) },
  packed: everywhere(ratio(1.3)),
  paced: everywhere(ratio(1.7)),
  "paced p50": { sqlite: value(1) },
  "paced p99": { ...everywhere(ratio(2)), sqlite: value(30) },
  "first event": everywhere(ratio(1.8)),
  "first token": everywhere(ratio(1.6)),
  run: everywhere(ratio(2.8)),
  "tool turn": { ...everywhere(ratio(5)), sqlite: ratio(7) },
  "late turn": everywhere(value(1.2)),
  // The ids of later events have more digits.
  "late bytes": everywhere(value(1.05)),
  stream: everywhere(value(110)),
  threads: { ...everywhere(value(5)), memory: value(35) },
  start: everywhere(ratio(3.5)),
  "token bytes": everywhere(value(130)),
  wire: everywhere(ratio(0.3)),
  neighbour: everywhere(value(50)),
} satisfies Record<string, Budgets>;

export type Figure = keyof typeof BUDGETS;

/**
 * Returns the budget of a row on `store`, and whether its median is within it. `unclear` means that it could not be
 * measured.
 */
export function budgetOf(store: Store, { is, skein, ratio = [] }: Row): Limit | undefined {
  const budgets: Budgets = is ? BUDGETS[is] : {};
  const budget = budgets[store];
  if (!budget) return undefined;
  const [values, unit] = budget.of === "ratio" ? [ratio, "×"] : [skein, ""];
  return { text: `≤ ${budget.most}${unit}`, verdict: verdictOf(median(values), budget) };
}

function verdictOf(value: number, { most }: Budget): string {
  if (Number.isNaN(value)) return "unclear";
  return value <= most ? "kept" : "over";
}
