// What a run is at, told by any process: read off the end of its log.

import { hasCode } from "../core/errors.ts";
import type { StreamEvent } from "../core/event.ts";
import { type Phase, trackPhase } from "../core/phase.ts";
import { isSettled, type RunRecord } from "../core/records.ts";
import type { EventLog, RunKey } from "../core/stores.ts";
import { logPart } from "./log-part.ts";

/** Events that are looked at. */
const TAIL = 256;

/** Nothing for a run that has ended: that is what its status says. */
export async function currentPhase(log: EventLog, key: RunKey, run: RunRecord): Promise<Phase | undefined> {
  if (isSettled(run.status)) return undefined;
  const { first, last } = await log.bounds(key);
  if (last === 0) return { name: run.status === "pending" ? "idle" : "processing" };
  const track = trackPhase();
  let phase: Phase = { name: "processing" };
  try {
    // The log holds events as they were checked when they were made.
    for await (const { json } of logPart(log, key, { after: Math.max(first - 1, last - TAIL), last }))
      phase = track(JSON.parse(json) as StreamEvent);
    return phase;
  } catch (error) {
    // So much was said meanwhile that this is gone: whoever wants to know asks again.
    if (hasCode(error, "events_expired")) return undefined;
    throw error;
  }
}
