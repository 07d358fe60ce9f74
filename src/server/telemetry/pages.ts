// Merges the metrics pages of several processes: each metric once, with the samples of all processes.

const END = "# EOF";

/** Merges pages of one of the two formats; samples of different pages must have different labels. */
export function mergePages(pages: readonly string[]): string {
  const lines = pages.flatMap((page) => page.split("\n")).filter((line) => line !== "" && line !== END);
  /** By the line with which a metric begins. */
  const metrics = new Map<string, string[]>();
  let metric: string[] = [];
  for (const line of lines) {
    if (line.startsWith("# HELP ")) {
      metric = metrics.get(line) ?? [];
      metrics.set(line, metric);
    } else if (!line.startsWith("# TYPE ") || metric.length === 0) metric.push(line);
  }
  const merged = [...metrics].flatMap(([help, rest]) => [help, ...rest]);
  const isOpen = pages[0]?.trimEnd().endsWith(END) ?? false;
  return `${[...merged, ...(isOpen ? [END] : [])].join("\n")}\n`;
}
