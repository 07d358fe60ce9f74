// The name of this process's life, for what is left on disk or running when it ends without cleaning up.

import { randomId } from "./random-id.ts";

/** `<pid>-<random>`: unlike the pid alone it is never had by two processes. */
export const PROCESS_ID = `${process.pid}-${randomId()}`;

/** Whether the process that had this name is gone. Asked on the same machine only. */
export function hasEnded(life: string): boolean {
  if (life === PROCESS_ID) return false;
  const pid = Number(life.split("-")[0]);
  if (!Number.isSafeInteger(pid) || pid <= 0 || pid === process.pid) return true;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return !(error instanceof Error && "code" in error && error.code === "EPERM");
  }
}
