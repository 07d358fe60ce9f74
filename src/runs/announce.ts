// Tells a run's user, wherever they listen, that it has begun and that it has ended.

import type { EventBus, UserEvent } from "../core/bus.ts";
import type { Owner } from "../core/ids.ts";
import type { RunRecord } from "../core/records.ts";

type EndStatus = Extract<UserEvent, { event: "run_ended" }>["data"]["status"];

/** One that is taken over has begun before. */
export function announceStart(bus: EventBus, owner: Owner, run: RunRecord): void {
  if (run.attempt === 1) bus.publish(owner, { event: "run_started", data: named(run) });
}

/** To be called once the end is written. */
export function announceEnd(bus: EventBus, owner: Owner, run: RunRecord, status: EndStatus): void {
  bus.publish(owner, { event: "run_ended", data: { ...named(run), status } });
}

const named = ({ thread_id, id, agent }: RunRecord) => ({ thread_id, run_id: id, agent });
