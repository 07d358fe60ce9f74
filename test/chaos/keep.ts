// Keeps what is needed to debug a fault, beside the servers' logs.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Journal } from "./journal.ts";

/** `timeline`: what befell whom. `readings`: each run as readers got it. */
export async function keep(dir: string, journal: Journal): Promise<void> {
  const readings = journal.runs.map((run) => {
    const lines = journal
      .seen(run)
      .map((line, index) => `${index + 1} ${line ? `${line.epoch} ${line.data}` : "?"}`);
    return [run, ...lines].join("\n");
  });
  await writeFile(join(dir, "timeline"), journal.timeline.join("\n"));
  await writeFile(join(dir, "readings"), readings.join("\n\n"));
}
