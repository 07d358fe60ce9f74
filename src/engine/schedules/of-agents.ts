// The schedules that agents create for their users. They work like the user's own schedules, but their ids have a
// prefix, which makes it possible to limit how many agents create.

import { createHash } from "node:crypto";
import { type Documents, type ListedDocument, newVersion } from "../../agent/core/documents.ts";
import { AppError } from "../../agent/core/errors.ts";
import type { NewSchedule, OwnSchedule, OwnSchedules } from "../../agent/core/own-schedules.ts";
import type { Run } from "../../agent/core/tool.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Runs } from "../runs/executor.ts";
import { recordOf, type ScheduleRecord, ScheduleSpec, scheduleOf } from "./schedule.ts";
import { schedulesOf, writeOf } from "./stored.ts";
import { checkTiming } from "./timing.ts";
import { recordAfter } from "./written.ts";

/** The prefix of the ids of schedules that agents create. */
const PREFIX = "agent-";
const PAGE = 100;

export interface AgentSchedulesOptions {
  readonly documents: Documents;
  readonly runs: Pick<Runs, "agents" | "executor">;
  /** The maximum number of schedules per user, and the maximum number among them that agents may create. */
  readonly most: { readonly ofUser: number; readonly ofAgents: number };
  /** Called for each change. Must return at once and not throw. */
  onChanged?(owner: Owner, agent: string, action: "create" | "delete", id: string): void;
}

export function createAgentSchedules(options: AgentSchedulesOptions): OwnSchedules {
  const { documents } = options;
  return {
    async create(run, callId, wanted) {
      const spec = specOf(run, wanted);
      checkTiming(spec);
      // Throws if this is a subagent that cannot be started as an agent.
      options.runs.agents.find(run.agent);
      const id = PREFIX + createHash("sha256").update(`${run.id} ${callId}`).digest("hex").slice(0, 12);
      const { isNew, record } = await write(options, run, { id, spec });
      if (isNew) options.onChanged?.(run.owner, run.agent, "create", id);
      return shown(id, record);
    },

    async list(run) {
      const all = await madeByAgents(documents, run.owner);
      return all.filter(isOf(run)).map(({ key, body }) => shown(key, recordOf(body)));
    },

    async delete(run, id) {
      const found = (await madeByAgents(documents, run.owner)).find(({ key }) => key === id);
      if (!found || !isOf(run)(found)) return false;
      const write = { key: id, seen: found.version, body: undefined };
      const outcome = await documents.write(schedulesOf(run.owner), [write], { version: newVersion() });
      // The schedule changed in the meantime, for example because its slot started.
      if (outcome !== "written") return this.delete(run, id);
      options.onChanged?.(run.owner, run.agent, "delete", id);
      return true;
    },
  };
}

const isOf = (run: Run) => (document: ListedDocument) => recordOf(document.body).spec.agent === run.agent;

const specOf = ({ id, agent, threadId }: Run, { thread, ...wanted }: NewSchedule): ScheduleSpec =>
  ScheduleSpec.parse({
    ...wanted,
    agent,
    thread: thread === "this" ? threadId : "new",
    metadata: { created_by_run: id },
  });

function shown(id: string, record: ScheduleRecord): OwnSchedule {
  const { cron, at, timezone, until, input, thread, status, next_runs } = scheduleOf(id, record);
  return { id, ...omitUndefined({ cron, at, until }), timezone, input, thread, status, next_runs };
}

async function madeByAgents(documents: Documents, owner: Owner): Promise<ListedDocument[]> {
  const found: ListedDocument[] = [];
  for (let cursor: string | undefined; ; ) {
    const query = { order: "key", prefix: PREFIX, limit: PAGE, cursor } as const;
    const { items, next_cursor } = await documents.page(schedulesOf(owner), query);
    found.push(...items);
    if (next_cursor === undefined) return found;
    cursor = next_cursor;
  }
}

/** Writes the schedule unless it exists. At the limit, deletes a completed schedule to make room. */
async function write(
  { documents, runs, most }: AgentSchedulesOptions,
  { id: runId, owner }: Run,
  { id, spec }: { readonly id: string; readonly spec: ScheduleSpec },
): Promise<{ readonly isNew: boolean; readonly record: ScheduleRecord }> {
  const collection = schedulesOf(owner);
  const { api_key } = runs.executor.senderOf(runId);
  for (;;) {
    const { documents: total } = await documents.size(collection);
    const made = await madeByAgents(documents, owner);
    const before = made.find(({ key }) => key === id);
    if (before) return { isNew: false, record: recordOf(before.body) };
    const removed = roomIn(made, most.ofAgents);
    if (total - removed.length >= most.ofUser) throw tooMany(most.ofUser);
    const { now } = await documents.read(collection, [id]);
    const record = recordAfter(undefined, { spec, api_key, now });
    const writes = [
      writeOf(id, undefined, record),
      ...removed.map(({ key, version }) => ({ key, seen: version, body: undefined })),
    ];
    // If a schedule was written in the meantime, this write is refused and the loop reads `made` again.
    const outcome = await documents.write(collection, writes, { version: newVersion(), limit: total + 1 });
    if (outcome === "written") return { isNew: true, record };
  }
}

/** Returns the completed schedules to delete so that one more fits. Throws `limit_exceeded`. */
function roomIn(made: readonly ListedDocument[], most: number): readonly ListedDocument[] {
  const excess = made.length + 1 - most;
  if (excess <= 0) return [];
  const completed = made
    .filter(({ body }) => recordOf(body).next === undefined && recordOf(body).pause === undefined)
    .toSorted((a, b) => a.updated_at - b.updated_at)
    .slice(0, excess);
  if (completed.length < excess) throw tooMany(most);
  return completed;
}

const tooMany = (limit: number) =>
  new AppError(
    "limit_exceeded",
    `There are already ${limit} schedules, which is the maximum. Delete one with schedule_delete, or ask the user to delete one.`,
    { details: { limit } },
  );
