// The way down of a sandbox that is not used: stopped, then its container removed, then its files deleted.

import type { SandboxRecord } from "../ledger.ts";
import type { Host } from "./services.ts";

/** Takes it one step down. False when it was used meanwhile: then nothing is done. Throws what the engine says. */
export async function retire(host: Host, seen: SandboxRecord, signal: AbortSignal): Promise<boolean> {
  const ending = await host.ledger.begin(seen);
  if (!ending) return false;
  const next = await STEPS[seen.state](host, seen.id, signal);
  await host.ledger.settle(ending, next);
  host.logger.info({ sandbox: seen.id, state: next }, "a sandbox was not used for long");
  return true;
}

type Step = (host: Host, id: string, signal: AbortSignal) => Promise<"stopped" | "removed" | "gone">;

const stop: Step = async ({ engine, disk }, id, signal) => {
  await engine.stop(id, signal);
  await disk.release(id, signal);
  return "stopped";
};

const STEPS: Record<SandboxRecord["state"], Step> = {
  running: stop,
  async stopped({ engine, disk }, id, signal) {
    await engine.remove(id, signal);
    await disk.release(id, signal);
    return "removed";
  },
  async removed({ engine, disk }, id, signal) {
    await engine.remove(id, signal);
    await disk.remove(id, signal);
    return "gone";
  },
  /** A process died over it: what it was about to do is not known, so the least of it is done. */
  async ending(host, id, signal) {
    if (await host.engine.inspect(id, signal)) return stop(host, id, signal);
    await host.disk.release(id, signal);
    return "removed";
  },
};
