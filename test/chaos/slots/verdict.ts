// The verdict: each slot has started one run, none two, and none was lost but by its policy.

import type { RunRecord } from "../../../src/agent/core/records.ts";
import type { Schedule } from "../../../src/engine/schedules/schedule.ts";
import type { Random } from "../random.ts";
import type { World } from "../world.ts";
import { runsOf, schedulesOf, threadsOf } from "./asking.ts";
import { byOwner, iso, MINUTE, type Owner, type PlannedSchedule } from "./plan.ts";

export interface Evidence {
  readonly schedules: readonly PlannedSchedule[];
  /** The first slot of each schedule, as the server named it when it was made. */
  readonly first: ReadonlyMap<PlannedSchedule, number>;
}

export async function judge({ schedules, first }: Evidence, random: Random, world: World): Promise<void> {
  for (const [owner, planned] of byOwner(schedules)) {
    const started = Map.groupBy(await runsOfAll(owner, random, world), ({ metadata }) =>
      String(metadata.schedule),
    );
    const shown = new Map((await schedulesOf(world, random, owner)).map((each) => [each.id, each]));
    for (const each of planned) {
      const runs = started.get(each.id) ?? [];
      started.delete(each.id);
      judgeSchedule(each, { runs, first: first.get(each) ?? 0, shown: shown.get(each.id) }, world);
    }
    for (const id of started.keys()) world.journal.fault(`there are runs of a schedule ${id}`);
  }
}

async function runsOfAll(owner: Owner, random: Random, world: World): Promise<RunRecord[]> {
  const threads = await threadsOf(world, random, owner);
  const found: RunRecord[] = [];
  const left = threads.values();
  const reader = async () => {
    for (const { id } of left) found.push(...(await runsOf(world, random, owner, id)));
  };
  await Promise.all(Array.from({ length: 8 }, reader));
  world.journal.count("threads", threads.length);
  return found;
}

interface Seen {
  readonly runs: readonly RunRecord[];
  readonly first: number;
  readonly shown: Schedule | undefined;
}

function judgeSchedule(
  { id, kind, until, owner }: PlannedSchedule,
  { runs, first, shown }: Seen,
  { journal }: World,
): void {
  const slots = runs.map(({ metadata }) => String(metadata.scheduled_for));
  const has = new Set(slots);
  const fault = (text: string) => journal.fault(`${owner.tenant}/${owner.user} ${id}: ${text}`);
  journal.count(`slots of ${kind}: runs`, runs.length);
  for (const { status, error } of runs)
    journal.count(`runs ended: ${status}${error ? ` (${error.code})` : ""}`);
  if (slots.length > has.size) fault(`${slots.length} runs for ${has.size} slots`);
  const owed = kind === "once" ? [until] : minutes(first, until);
  journal.count("slots", owed.length);
  const lost = owed.map(iso).filter((slot) => !has.delete(slot));
  for (const slot of has) fault(`a run for ${slot}, which is no slot`);
  journal.count(`slots of ${kind}: none`, lost.length);
  if (lost.length > 0 && ["once", "each", "queued"].includes(kind))
    fault(`no run for ${lost.length} slots: ${lost.slice(0, 3)}; ${JSON.stringify(shown)}`);
  const last = iso(owed.at(-1) ?? until);
  if (kind === "latest" && lost.includes(last)) fault(`no run for its last slot, ${last}`);
  if (shown?.status !== "completed") fault(`it is not completed: ${JSON.stringify(shown)}`);
  if (runs.length > 0 && shown?.last_run?.scheduled_for !== slots.toSorted().at(-1))
    fault(`it shows as its last run that of ${shown?.last_run?.scheduled_for}`);
}

/** Each minute from the first slot on, to the last one that is not after `until`. */
const minutes = (first: number, until: number) =>
  Array.from({ length: Math.floor((until - first) / MINUTE) + 1 }, (_, at) => first + at * MINUTE);
