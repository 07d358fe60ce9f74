// Identifies this process, in order to mark files and processes that a crash may leave behind.

import { randomId } from "./random-id.ts";

/** `<pid>-<random>`. Unlike a pid, it is never reused. */
export const PROCESS_ID = `${process.pid}-${randomId()}`;

/** Returns true if the process with this id has ended. Works only for processes on this machine. */
export function hasEnded(id: string): boolean {
  if (id === PROCESS_ID) return false;
  const pid = Number(id.split("-")[0]);
  if (!Number.isSafeInteger(pid) || pid <= 0 || pid === process.pid) return true;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return !(error instanceof Error && "code" in error && error.code === "EPERM");
  }
}
