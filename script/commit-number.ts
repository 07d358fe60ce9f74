// A number for the commit that is checked out. Each commit tries a part of what takes long, so all parts are tried over time.

import { execFileSync } from "node:child_process";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");

/** From the hash of the commit: the same in every clone. Throws outside of a git repository. */
export const numberOfCommit = () =>
  Number.parseInt(
    execFileSync("git", ["rev-parse", "HEAD"], { cwd: ROOT, encoding: "utf8" }).slice(0, 8),
    16,
  );
