// What became of a container whose shell went away, or keeps silent, in words that fit "it was lost: …".

import type { Engine } from "./engine.ts";
import { type ContainerInfo, EngineError } from "./engine-info.ts";

export interface Loss {
  readonly why: string;
  /** Whether the container is to be given up. */
  readonly isGone: boolean;
}

/** One that was paused goes on. Never throws but the signal's reason. */
export async function findLoss(engine: Engine, containerId: string, signal: AbortSignal): Promise<Loss> {
  try {
    const found = await engine.inspect(containerId, signal);
    if (found?.status === "running") return { why: "its shell was killed", isGone: false };
    if (found?.status !== "paused") return { why: endOf(found), isGone: true };
    await engine.unpause(containerId, signal);
    return { why: "its container was paused", isGone: false };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return { why: "the Docker engine went away", isGone: true };
  }
}

function endOf(found: ContainerInfo | undefined): string {
  if (!found) return "its container was removed";
  if (found.oomKilled) return "its container ran out of memory";
  return found.exitCode === 137 ? "its container was killed" : "its container was stopped";
}
