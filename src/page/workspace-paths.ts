// Finds workspace paths in the form in which the model writes them, and collects the paths that its calls have named.
// Independent of the DOM.

import type { Lane } from "../client/cells.ts";
import { withinWorkspace } from "./tree.ts";

/** Converts a URL to a path: `./a%20b.md#part` to `a b.md`. An absolute path stays absolute. */
export function pathOf(address: string): string {
  const path = address.replace(/[?#].*$/s, "");
  try {
    return withinWorkspace("", decodeURIComponent(path));
  } catch {
    return withinWorkspace("", path);
  }
}

const OF_FILES: ReadonlySet<string> = new Set(["write_file", "edit_file", "read_file"]);

/** Returns a function that returns true if a successful call in the lane has named the path. Reads each call once. */
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
