// Medians and percentiles of a series of figures.

/** NaN for an empty series, like the functions below. */
export const median = (values: readonly number[]) => quantile(values, 0.5);

/** Interpolates the quantile between two neighbours. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = Float64Array.from(values).sort();
  const at = (sorted.length - 1) * q;
  const below = sorted[Math.floor(at)] ?? Number.NaN;
  const above = sorted[Math.ceil(at)] ?? Number.NaN;
  return below + (above - below) * (at - Math.floor(at));
}
