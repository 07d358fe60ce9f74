// Programs that script/test-tools installs, where it can.

import { spawnSync } from "node:child_process";

export const hasProgram = (name: string): boolean =>
  spawnSync("sh", ["script/test-tools", name], { stdio: ["ignore", "ignore", "inherit"] }).status === 0;
