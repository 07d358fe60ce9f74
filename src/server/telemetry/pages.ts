// What several processes show to Prometheus, as one page: each metric once, with the samples of all of them.

const END = "# EOF";

/** Of pages in one of the two formats, whose samples have different labels. */
export function mergePages(pages: readonly string[]): string {
  const lines = pages.flatMap((page) => page.split("\n")).filter((line) => line !== "" && line !== END);
  /** By the line that a metric begins with. */
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
