// What this machine's system can do.

import { existsSync } from "node:fs";

/** Whether open files and running processes can be looked at under /proc, as on Linux. */
export const HAS_PROC = process.platform === "linux" && existsSync("/proc/self/fd");
