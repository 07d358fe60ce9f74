// Paths of the workspace that a model names: as it writes them, and those that are known from its calls. No DOM.

import type { Lane } from "../client/cells.ts";
import { withinWorkspace } from "./tree.ts";

/** From an address to a path: `./a%20b.md#part` is `a b.md`. One that is absolute stays so. */
export function pathOf(address: string): string {
  const path = address.replace(/[?#].*$/s, "");
  try {
    return withinWorkspace("", decodeURIComponent(path));
  } catch {
    return withinWorkspace("", path);
  }
}

const OF_FILES: ReadonlySet<string> = new Set(["write_file", "edit_file", "read_file"]);

/** Whether a call of the lane that succeeded has named the path. Each call is looked at once. */
export function namedFiles({ cells }: Lane): (path: string) => boolean {
  const named = new Set<string>();
  let next = 0;
  return (path) => {
    if (next > cells.length) next = 0;
    for (; next < cells.length; next++) {
      const cell = cells[next];
      if (cell?.kind !== "tool") continue;
      if (cell.state === "open") break;
      const file = cell.args?.path;
      if (cell.state === "done" && OF_FILES.has(cell.name) && typeof file === "string")
        named.add(pathOf(file));
    }
    return named.has(pathOf(path));
  };
}
