// Removing: what is removed is gone at once, erasing it may take its time.

import { AppError } from "../../core/errors.ts";
import { LaneLost, quote } from "./runner.ts";
import { stagingName, succeeded, type Target, wordsOf } from "./target.ts";

/** A folder with all that is in it. What cannot be erased now is left to `clearStaging`. */
export async function removeEntry(target: Target, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (target.relative === "")
    throw new AppError("backend_refused", "The workspace itself cannot be removed, only what is in it.");
  const name = stagingName();
  if (!(await take(target, name, signal))) return;
  const script = `fs_root ${quote(target.workdir)} && fs_erase ${name}`;
  await target.runner.runOnce({ script }, signal).catch(() => {});
}

/** True when there may be something to erase in staging. */
async function take(target: Target, name: string, signal: AbortSignal): Promise<boolean> {
  const fragment = { script: `fs_remove ${wordsOf(target)} ${name}` };
  try {
    const { fields } = succeeded(await target.runner.runOnce(fragment, signal), target.path);
    return fields[1] === "moved";
  } catch (error) {
    if (!(error instanceof LaneLost)) throw error;
  }
  const reply = await target.runner.run(fragment, signal);
  // What is not there any more was removed before the loss.
  if (reply.fields[0] !== "ENOENT") succeeded(reply, target.path);
  return true;
}
