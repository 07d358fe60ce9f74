// The table. Prints one line per figure as soon as it is known.

import type { Row, Scenario } from "./rig.ts";
import { median } from "./stats.ts";

const WIDTHS = [42, 9, 9, 8, 13, 9, 8];

/** The limit of a figure, and whether the figure is within it. */
export interface Limit {
  readonly text: string;
  readonly verdict: string;
}

/** Names the measured server, its counterpart and the limit. */
export const heading = (beside: string, measured: string, limit = "budget") =>
  `${line(["", beside, measured, "ratio", "its range", limit, ""])}\n${"─".repeat(WIDTHS.reduce((sum, width) => sum + width))}`;

export const section = ({ name, about }: Scenario) => `${name}: ${about}`;

export function lineOf({ figure, bare, skein, ratio }: Row, limit?: Limit): string {
  return line([
    `  ${figure}`,
    bare && number(median(bare)),
    number(median(skein)),
    ratio && `${number(median(ratio))}×`,
    ratio && ratio.length > 1 ? `${number(Math.min(...ratio))}–${number(Math.max(...ratio))}` : "",
    limit?.text,
    limit?.verdict,
  ]);
}

/** The first column is text. All others are right-aligned. */
function line(cells: readonly (string | undefined)[]): string {
  return cells
    .map((cell = "", index) => {
      const width = WIDTHS[index] ?? 0;
      return index === 0 ? cell.padEnd(width) : cell.padStart(width);
    })
    .join("")
    .trimEnd();
}

/** Rounds to three digits, because more would be noise. */
function number(value: number): string {
  if (Number.isNaN(value)) return "–";
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
  return value.toLocaleString("en", { maximumSignificantDigits: 3 });
}
