// Files that the agent reads as instructions when its next run begins: its memory and its skills.

import { posix } from "node:path";
import { isInside } from "../../../lib/paths.ts";
import type { AgentDefinition } from "../../core/agent.ts";

/**
 * Returns a function that returns true for the paths of files that the agent reads as instructions. Relative
 * paths start in `workdir`.
 */
export function instructionsOf(
  { memory, skills }: Pick<AgentDefinition, "memory" | "skills">,
  workdir: string,
): (path: string) => boolean {
  // Some file systems ignore case.
  const full = (path: string) => posix.resolve(workdir, path).toLowerCase();
  const files = new Set(memory?.paths.map(full));
  const folders = skills?.paths.map(full) ?? [];
  return (path) => {
    const named = full(path);
    return (
      files.has(named) ||
      (posix.basename(named) === "skill.md" && folders.some((folder) => isInside(folder, named)))
    );
  };
}
