// What is printed in the end.

import type { Outcome } from "./chaos.ts";

const KINDS = ["kill", "stop", "drain", "unknown", "unexplained"] as const;

export function reportOf({ counts, times, faults, folder }: Outcome): string {
  const { takeOvers, turns } = times;
  const calm = takeOvers.filter(({ isDisturbed }) => !isDisturbed);
  const took = (list: typeof takeOvers) => list.map(({ ms }) => ms);
  return [
    ...[...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, count]) => row(name, count)),
    "",
    "take-overs, from the strike to the next event (of a drain: from the last event):",
    ...KINDS.map((kind) => timesRow(kind, took(calm.filter(({ by }) => by === kind)))),
    timesRow("in more trouble than that", took(takeOvers.filter(({ isDisturbed }) => isDisturbed))),
    "runs that waited for their thread, from its last run's end to their begin:",
    timesRow("next in line", turns),
    "",
    ...(faults.length === 0 ? ["No faults."] : [`${faults.length} FAULTS:`, ...faults]),
    ...(folder === undefined ? [] : ["", `Logs: ${folder}`]),
  ].join("\n");
}

const row = (name: string, value: number | string) => `${name.padEnd(40)}${String(value).padStart(9)}`;

function timesRow(name: string, times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number) =>
    `${sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]} ms`;
  const figures = sorted.length === 0 ? "" : `   p50 ${at(0.5)}, p99 ${at(0.99)}, longest ${at(1)}`;
  return row(`  ${name}`, sorted.length) + figures;
}
