// A path that something is done with in a shell: how its fragments name it, and what their failures are called.

import { posix } from "node:path";
import { randomId } from "../../lib/random-id.ts";
import { failure } from "../failures.ts";
import { type Fragment, quote, type Reply, type Runner } from "./runner.ts";

const CLEANUP_MS = 2000;
/** Of output, where a fragment does not say that it needs more: whoever has taken over a shell can send much. */
const MAX_BYTES = 64 * 1024;

export interface Target {
  readonly runner: Runner;
  readonly workdir: string;
  /** As the agent wrote it, for messages. */
  readonly path: string;
  /** To the workspace, without `.` and `..`; empty for the workspace itself. */
  readonly relative: string;
}

/** Workspace, folder and name: the words that the functions of the prelude take. */
export function wordsOf({ workdir, relative }: Target): string {
  return [workdir, posix.dirname(relative), posix.basename(relative) || "."].map(quote).join(" ");
}

/** Runs a fragment that may safely run twice. Throws what it says went wrong. */
export async function perform(target: Target, fragment: Fragment, signal: AbortSignal): Promise<Reply> {
  signal.throwIfAborted();
  return succeeded(await target.runner.run({ maxBytes: MAX_BYTES, ...fragment }, signal), target.path);
}

export function succeeded(reply: Reply, path: string): Reply {
  const [status = ""] = reply.fields;
  if (status === "0") return reply;
  // It comes from a stranger, and goes into a message.
  throw failure(/^[A-Z_]{1,20}$/.test(status) ? status : "EIO", path);
}

/** A name in staging that nobody else has, and that tells when it was made. */
export const stagingName = (unique = randomId()) => `${Math.floor(Date.now() / 1000)}-${unique}`;

/** Removes a file from staging, if it can be done soon. Otherwise it is left for `clearStaging`. */
export async function discard({ runner, workdir }: Target, name: string): Promise<void> {
  const script = `fs_root ${quote(workdir)} && rm -f "$S/${name}"`;
  await runner.run({ script }, AbortSignal.timeout(CLEANUP_MS)).catch(() => {});
}
