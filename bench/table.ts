// The table: one line per figure, printed as soon as it is known.

import type { Row, Scenario } from "./rig.ts";
import { median } from "./stats.ts";

const WIDTHS = [42, 9, 9, 8, 13, 9, 6];

/** What is measured, and beside what. */
export const heading = (beside: string, measured: string) =>
  `${line(["", beside, measured, "ratio", "its range", "budget", ""])}\n${"─".repeat(WIDTHS.reduce((sum, width) => sum + width))}`;

export const section = ({ name, about }: Scenario) => `${name}: ${about}`;

export function lineOf({ figure, bare, skein, ratio, budget }: Row): string {
  const value = median((budget?.of === "ratio" ? ratio : skein) ?? []);
  const verdict = budget && (value <= budget.most ? "ok" : "OVER");
  const limit = budget && `≤ ${budget.most}${budget.of === "ratio" ? "×" : ""}`;
  return line([
    `  ${figure}`,
    bare && number(median(bare)),
    number(median(skein)),
    ratio && `${number(median(ratio))}×`,
    ratio && ratio.length > 1 ? `${number(Math.min(...ratio))}–${number(Math.max(...ratio))}` : "",
    limit,
    verdict,
  ]);
}

/** The first column is text; all others stand to the right. */
function line(cells: readonly (string | undefined)[]): string {
  return cells
    .map((cell = "", index) => {
      const width = WIDTHS[index] ?? 0;
      return index === 0 ? cell.padEnd(width) : cell.padStart(width);
    })
    .join("")
    .trimEnd();
}

/** Three digits, as more would be noise. */
function number(value: number): string {
  if (Number.isNaN(value)) return "–";
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
  return value.toLocaleString("en", { maximumSignificantDigits: 3 });
}
