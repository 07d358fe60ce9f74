// Summarizes where a server spent its CPU time.

import type { Profile } from "./probe.ts";

const TOP = 40;

/** Returns the shares of the busy time, excluding callees, by location and then by function. */
export function summaryOf({ nodes, samples = [], timeDeltas = [] }: Profile): string {
  const frames = new Map(nodes.map((node) => [node.id, node.callFrame]));
  const places = new Map<string, number>();
  const functions = new Map<string, number>();
  for (const [index, id] of samples.entries()) {
    const frame = frames.get(id);
    if (!frame || frame.functionName === "(idle)") continue;
    const { functionName, url, lineNumber } = frame;
    const place = placeOf(url) || "Node and V8, native";
    // A sample covers the time until the next sample.
    const microseconds = timeDeltas[index + 1] ?? 0;
    add(places, place, microseconds);
    add(
      functions,
      `${functionName || "(anonymous)"}  ${place}${url ? `:${lineNumber + 1}` : ""}`,
      microseconds,
    );
  }
  return `${shares(places)}\n\n${shares(functions)}`;
}

/** Returns the file in this repository, otherwise the package. */
function placeOf(url: string): string {
  const inPackage = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1];
  const ours = /^file:.*\/((?:dist|bench)\/.*)$/.exec(url)?.[1];
  return inPackage ?? ours ?? url;
}

function add(sums: Map<string, number>, key: string, value: number): void {
  sums.set(key, (sums.get(key) ?? 0) + value);
}

function shares(sums: ReadonlyMap<string, number>): string {
  const total = sums.values().reduce((sum, each) => sum + each, 0);
  return [...sums]
    .sort(([, a], [, b]) => b - a)
    .slice(0, TOP)
    .map(([key, value]) => `${((100 * value) / total).toFixed(1).padStart(6)} %  ${key}`)
    .join("\n");
}
