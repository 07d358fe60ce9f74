// Ending all that runs in a sandbox.

import type { Opened } from "./move-in.ts";

/** For a shell to kill all the others. Where it gets no processor, the engine does it. */
const KILL_ALL_MS = 1500;

/** True when the container still runs, and nothing in it but what is the server's. Never throws. */
export async function clearOut({ shell, host, containerId }: Opened, signal: AbortSignal): Promise<boolean> {
  try {
    await shell.killAll(AbortSignal.any([signal, AbortSignal.timeout(KILL_ALL_MS)]));
    return true;
  } catch {
    await host.engine.stop(containerId, signal).catch(() => {});
    return false;
  }
}
