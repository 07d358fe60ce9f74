// Bars: a chart by day with a table below it, or a table by name with a bar in each row.

import { Plain } from "../components.tsx";
import { percent } from "../numbers.ts";
import { t } from "../texts.ts";

export interface Amount {
  readonly name: string;
  readonly value: number;
}

export interface BarsProps {
  readonly title: string;
  /** The name of the measured value, which is also its column's header. */
  readonly measure: string;
  readonly amounts: readonly Amount[];
  readonly format: (value: number) => string;
}

const HEIGHT = 120;
/** The width of a bar as a fraction of its column (0–1). */
const WIDE = 0.7;

/** Oldest first. The collapsible table below contains the numbers. */
export function DayBars({ title, measure, amounts, format }: BarsProps) {
  const most = Math.max(...amounts.map(({ value }) => value), 0);
  const words = t().bars;
  const each = 100 / Math.max(1, amounts.length);
  return (
    <figure class="bars">
      <figcaption>{title}</figcaption>
      <svg width="100%" height={HEIGHT + 18} role="img" aria-label={words.says(title)}>
        <text x="0" y="10">
          {most > 0 ? format(most) : ""}
        </text>
        <line x1="0" x2="100%" y1={HEIGHT} y2={HEIGHT} />
        {amounts.map(({ name, value }, at) => {
          const height = most > 0 ? (value / most) * (HEIGHT - 16) : 0;
          return (
            <rect
              key={name}
              x={`${each * (at + (1 - WIDE) / 2)}%`}
              y={HEIGHT - height}
              width={`${each * WIDE}%`}
              height={value > 0 ? Math.max(1, height) : 0}
            >
              <title>{`${name}: ${format(value)}`}</title>
            </rect>
          );
        })}
        <text x="0" y={HEIGHT + 14}>
          {amounts[0]?.name}
        </text>
        <text x="100%" y={HEIGHT + 14} text-anchor="end">
          {amounts.at(-1)?.name}
        </text>
      </svg>
      <details>
        <summary>{words.table}</summary>
        <table>
          <thead>
            <tr>
              <th>{words.day}</th>
              <th class="number">{measure}</th>
            </tr>
          </thead>
          <tbody>
            {amounts.toReversed().map(({ name, value }) => (
              <tr key={name}>
                <td>{name}</td>
                <td class="number">{format(value)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </figure>
  );
}

/** Largest first. */
export function NameBars({ title, measure, amounts, format }: BarsProps) {
  const sorted = amounts.toSorted((a, b) => b.value - a.value);
  const most = Math.max(sorted[0]?.value ?? 0, 1);
  const total = sorted.reduce((sum, { value }) => sum + value, 0);
  return (
    <table class="name-bars">
      <thead>
        <tr>
          <th>{title}</th>
          <th>{t().bars.share}</th>
          <th class="number">{measure}</th>
        </tr>
      </thead>
      <tbody>
        {sorted.map(({ name, value }) => (
          <tr key={name}>
            <td>
              <Plain>{name}</Plain>
            </td>
            <td>
              <PartBar part={value / most} says={total > 0 ? percent(value / total) : t().bars.none} />
            </td>
            <td class="number">{format(value)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** `part` is a fraction (0–1). `says` is its meaning, for screen readers. */
export const PartBar = ({ part, says }: { part: number; says: string }) => (
  <svg class="part-bar" width="100%" height="12" role="img" aria-label={says}>
    <rect class="all" width="100%" height="12" rx="2" />
    <rect class="part" width={`${Math.min(1, Math.max(0, part)) * 100}%`} height="12" rx="2" />
  </svg>
);
