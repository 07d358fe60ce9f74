// The schedules that agents make for their users. They are schedules of the user like any other, with ids of their own, so that
// their number has a bound.

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

/** Begins the ids of the schedules that agents make. */
const PREFIX = "agent-";
const PAGE = 100;

export interface AgentSchedulesOptions {
  readonly documents: Documents;
  readonly runs: Pick<Runs, "agents" | "executor">;
  /** Maximum number of schedules of a user, and of those among them that agents have made. */
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
      // A subagent may be of no agent that can be started.
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
      // Its slot was started meanwhile.
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

/** Writes a schedule that is not there. At the bound, one that is completed makes room. */
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
    // One that was written meanwhile does not fit: then `made` is read again.
    const outcome = await documents.write(collection, writes, { version: newVersion(), limit: total + 1 });
    if (outcome === "written") return { isNew: true, record };
  }
}

/** The completed schedules to delete, so that one more fits. Throws `limit_exceeded`. */
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
    `There are already ${limit} schedules, which is the maximum. Delete one with schedule_delete, or ask the user to.`,
    { details: { limit } },
  );
