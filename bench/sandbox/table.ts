// The table, in Markdown, so a run can be copied into docs/concepts/performance.md. Prints one line per figure as soon
// as it is known.

import { median, quantile } from "../stats.ts";

const WIDTHS = [52, 15, 15, 20, 7, 4];

export interface Row {
  readonly figure: string;
  readonly plain?: string;
  readonly skein: string;
  /** How many times faster it is than the plain way, for each round. */
  readonly faster?: readonly number[];
  readonly budget?: Budget;
}

export interface Budget {
  readonly text: string;
  readonly isKept: boolean;
}

export const heading = () =>
  [
    line(["", "`docker exec`", "Skein", "faster (its range)", "budget", ""]),
    `|${"---|".repeat(WIDTHS.length)}`,
  ].join("\n");

export const section = (name: string) => line([`**${name}**`]);

export function lineOf({ figure, plain, skein, faster, budget }: Row): string {
  return line([
    figure,
    plain,
    skein,
    faster && timesOf(faster),
    budget?.text,
    budget && (budget.isKept ? "kept" : "over"),
  ]);
}

/** Relative to the plain way's time. */
export const atLeast = (times: number, faster: readonly number[]): Budget => ({
  text: `≥ ${times}×`,
  isKept: median(faster) >= times,
});

export const atMost = (most: number, values: readonly number[]): Budget => ({
  text: `≤ ${most}`,
  isKept: median(values) <= most,
});

/** Returns the median and the 99th percentile. */
export const spread = (values: readonly number[]) =>
  `${number(median(values))} · ${number(quantile(values, 0.99))}`;

export const middle = (values: readonly number[]) => number(median(values));

/** Rounds to three digits, because more would be noise. */
export function number(value: number): string {
  if (Number.isNaN(value)) return "–";
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
  return value.toLocaleString("en", { maximumSignificantDigits: 3 });
}

function timesOf(values: readonly number[]): string {
  const range = `${number(Math.min(...values))}–${number(Math.max(...values))}`;
  return `${middle(values)}×${values.length > 1 ? ` (${range})` : ""}`;
}

function line(cells: readonly (string | undefined)[]): string {
  const padded = WIDTHS.map((width, column) => ` ${(cells[column] ?? "").padEnd(width)} `);
  return `|${padded.join("|")}|`;
}
