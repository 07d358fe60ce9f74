// Removing: what is removed is gone at once, erasing it may take its time.

import { AppError } from "../../core/errors.ts";
import { type Fragment, LaneLost, quote, type Reply } from "./runner.ts";
import { stagingName, succeeded, type Target, wordsOf } from "./target.ts";

/** A folder with all that is in it. What cannot be erased now is left to `clearStaging`. */
export async function removeEntry(target: Target, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (target.relative === "")
    throw new AppError("backend_refused", "The workspace itself cannot be removed, only what is in it.");
  const name = stagingName();
  const reply = await take(target, { script: `fs_remove ${wordsOf(target)} ${name}` }, signal);
  if (reply?.fields[1] !== "moved") return;
  const script = `fs_root ${quote(target.workdir)} && fs_erase ${name}`;
  await target.runner.runOnce({ script }, signal).catch(() => {});
}

async function take(target: Target, fragment: Fragment, signal: AbortSignal): Promise<Reply | undefined> {
  try {
    return succeeded(await target.runner.runOnce(fragment, signal), target.path);
  } catch (error) {
    if (!(error instanceof LaneLost)) throw error;
  }
  const reply = await target.runner.run(fragment, signal);
  // What is not there any more was removed before the loss.
  return reply.fields[0] === "ENOENT" ? undefined : succeeded(reply, target.path);
}
