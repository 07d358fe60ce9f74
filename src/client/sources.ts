// The web pages that tools have read for the next answer in a lane.

import type { WebSource } from "./wire.ts";

/** The maximum number of pages for one answer. */
const MOST = 100;

export function collectSources() {
  const byUrl = new Map<string, WebSource>();
  return {
    add(sources: readonly WebSource[] = []): void {
      for (const source of sources) {
        if (byUrl.size >= MOST) return;
        const known = byUrl.get(source.url);
        if (!known?.title) byUrl.set(source.url, source);
      }
    },
    /** Returns each page once and then forgets it. */
    take(): readonly WebSource[] {
      const taken = [...byUrl.values()];
      byUrl.clear();
      return taken;
    },
  };
}
