// Copies the files of `workspace/` into the agent's workspace on a running server, over its HTTP API.

import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("workspace", import.meta.url));

/** Returns the written paths. Throws the server's error. */
export async function fillWorkspace(skein: string, agent: string): Promise<string[]> {
  const entries = await readdir(FOLDER, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  const written: string[] = [];
  for (const file of files.sort()) {
    const path = relative(FOLDER, file);
    const url = new URL(`/backend/files/${path}?agent=${encodeURIComponent(agent)}`, skein);
    const response = await fetch(url, { method: "PUT", body: await readFile(file) });
    if (!response.ok) throw new Error(`\`${path}\` was refused: ${await response.text()}`);
    written.push(path);
  }
  return written;
}

if (import.meta.main) {
  const skein = process.env.SKEIN_URL ?? "http://127.0.0.1:8000";
  for (const path of await fillWorkspace(skein, "writer")) console.log(path);
}
