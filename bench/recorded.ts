// Compares a new measurement with the ratios of an earlier commit, which are in figures.json.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Figure } from "./budgets.ts";
import { quantile } from "./stats.ts";
import type { Store } from "./targets.ts";

const FILE = join(import.meta.dirname, "figures.json");

/** The factor by which a ratio may grow before it blocks a change. */
export const JUMP = 1.25;
const LEAST_PAIRS = 5;

export type Ratios = Partial<Record<Figure, number>>;
export type Recorded = Partial<Record<Store, Ratios>>;

/** The ratio of a pair, and how long its servers waited for their processor, relative to the CPU time that they used. */
export interface Measured {
  readonly ratio: number;
  readonly waited: number;
}

/**
 * `kept` and `jumped` require that three of four pairs agree. On an overloaded machine, they seldom do. A pair whose
 * servers waited longer than they ran does not count, because other work affects the processor's caches and thus costs
 * the larger program more. If too few pairs are left, or nothing is recorded, the result is `unclear`.
 */
export type Comparison = "kept" | "jumped" | "unclear";

export function comparisonOf(measured: readonly Measured[], recorded: number | undefined): Comparison {
  const ratios = measured.filter(({ waited }) => waited <= 1).map(({ ratio }) => ratio);
  if (recorded === undefined || ratios.length < LEAST_PAIRS) return "unclear";
  if (quantile(ratios, 0.75) <= JUMP * recorded) return "kept";
  return quantile(ratios, 0.25) > JUMP * recorded ? "jumped" : "unclear";
}

// `writeRecorded` wrote this file.
export const readRecorded = (): Recorded => JSON.parse(readFileSync(FILE, "utf8"));

export const writeRecorded = (figures: Recorded): void =>
  writeFileSync(FILE, `${JSON.stringify(figures, null, 2)}\n`);
