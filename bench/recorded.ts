// The ratios of an earlier commit, in figures.json, and what a new measurement says beside them.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Figure } from "./budgets.ts";
import { quantile } from "./stats.ts";
import type { Store } from "./targets.ts";

const FILE = join(import.meta.dirname, "figures.json");

/** A ratio may grow this much before it holds up a change. */
export const JUMP = 1.25;
const LEAST_PAIRS = 5;

export type Ratios = Partial<Record<Figure, number>>;
export type Recorded = Partial<Record<Store, Ratios>>;

/** One pair: its ratio, and how long its servers waited for their processor, in times of what they used. */
export interface Measured {
  readonly ratio: number;
  readonly waited: number;
}

/**
 * `kept` and `jumped` are said when three of four pairs agree. They seldom do on a machine that has more to do than it
 * can: a pair whose servers waited longer than they ran says nothing, as what other work does to a processor's
 * caches costs the larger program more. When too few pairs are left, or nothing is recorded, it is `unclear`.
 */
export type Comparison = "kept" | "jumped" | "unclear";

export function comparisonOf(measured: readonly Measured[], recorded: number | undefined): Comparison {
  const ratios = measured.filter(({ waited }) => waited <= 1).map(({ ratio }) => ratio);
  if (recorded === undefined || ratios.length < LEAST_PAIRS) return "unclear";
  if (quantile(ratios, 0.75) <= JUMP * recorded) return "kept";
  return quantile(ratios, 0.25) > JUMP * recorded ? "jumped" : "unclear";
}

// `writeRecorded` wrote it.
export const readRecorded = (): Recorded => JSON.parse(readFileSync(FILE, "utf8"));

export const writeRecorded = (figures: Recorded): void =>
  writeFileSync(FILE, `${JSON.stringify(figures, null, 2)}\n`);
