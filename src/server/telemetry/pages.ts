// Merges the metrics pages of several processes. Each metric appears once, with the samples of all processes.

const END = "# EOF";

/** Merges pages of the same format. Samples on different pages must have different labels. */
export function mergePages(pages: readonly string[]): string {
  const lines = pages.flatMap((page) => page.split("\n")).filter((line) => line !== "" && line !== END);
  /** The lines of each metric. The key is the line with which the metric begins. */
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
