// The name under which this deployment knows its own things on an engine that others may use as well.

import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "../../core/errors.ts";
import { randomId } from "../../lib/random-id.ts";

/** Made once, kept in `dataDir`, and the same for all processes that share it. Throws `backend_failed`. */
export async function deploymentOf(dataDir: string): Promise<string> {
  const path = join(dataDir, "deployment");
  const draft = `${path}.${randomId()}`;
  try {
    const known = await readName(path);
    if (known !== undefined) return known;
    await mkdir(dataDir, { recursive: true });
    await writeFile(draft, randomId());
    // Of two that make it at once, the first one's is taken by both.
    await link(draft, path).catch(() => {});
    const made = await readName(path);
    if (made !== undefined) return made;
  } catch (cause) {
    throw new AppError(
      "backend_failed",
      "The name of this deployment cannot be kept in the server's data folder.",
      {
        cause,
      },
    );
  } finally {
    await rm(draft, { force: true }).catch(() => {});
  }
  throw new AppError(
    "backend_failed",
    "The file `deployment` in the server's data folder holds no name. Remove it.",
  );
}

async function readName(path: string): Promise<string | undefined> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  return text !== undefined && /^[A-Za-z0-9_-]{1,64}$/.test(text.trim()) ? text.trim() : undefined;
}
