// `skein schedules`: creates, lists, pauses and runs the schedules of the key's user on a running server.

import { type Body, type Client, createClient, type Schedule } from "../../client/client.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { tableOf } from "./table.ts";
import { t } from "./texts.ts";

interface Server {
  readonly url: string;
  readonly key: string | undefined;
}

interface PutOptions {
  readonly cron?: string | undefined;
  readonly at?: string | undefined;
  readonly timezone?: string | undefined;
  readonly input?: string | undefined;
  readonly agent?: string | undefined;
  readonly thread?: string | undefined;
  readonly overlap?: string | undefined;
  readonly missed?: string | undefined;
  readonly questions?: string | undefined;
  readonly until?: string | undefined;
  readonly paused?: boolean | undefined;
}

type Spec = Body<"PUT /schedules/{schedule_id}">;

const PAGE = 100;

function methodsOf({ url, key }: Server): Client["schedules"] {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  return createClient({ baseUrl: url, headers }).schedules;
}

/** Times are ISO 8601 in UTC in every language, because scripts read and sort them. */
export async function listSchedules(server: Server): Promise<string> {
  const { list } = methodsOf(server);
  const rows: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = await list({ limit: PAGE, ...omitUndefined({ cursor }) });
    rows.push(...page.items.map(rowOf));
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return tableOf([t().schedules.head, ...rows]);
}

function rowOf({ id, status, pause, cron, at = "", timezone, next_runs, last_slot }: Schedule): string[] {
  const { states, outcomes } = t().schedules;
  const state = pause ? `${states.paused}: ${pause.reason}` : states[status];
  const last = last_slot ? `${outcomes[last_slot.outcome]} ${last_slot.scheduled_for}` : "";
  return [id, state, cron === undefined ? at : `${cron} ${timezone}`, next_runs[0] ?? "", last];
}

/** Creates or replaces a schedule. Lists its next times, one per line. */
export async function putSchedule(
  server: Server,
  id: string,
  { missed: catch_up, input = "", ...options }: PutOptions,
): Promise<{ readonly output: string; readonly note: string }> {
  // The server checks each of them.
  const spec = { input, ...omitUndefined({ ...options, catch_up }) } as Spec;
  const { next_runs } = await methodsOf(server).put(id, spec);
  return { output: next_runs.join("\n"), note: t().schedules.stored(id) };
}

/** Lists the next times of a schedule without storing it, one per line. */
export async function previewSchedule(
  server: Server,
  times: Pick<PutOptions, "cron" | "at" | "timezone" | "until">,
): Promise<string> {
  return (await methodsOf(server).preview(omitUndefined(times))).next_runs.join("\n");
}

/** Prints the thread of the run. */
export async function runSchedule(server: Server, id: string) {
  const { thread_id, id: run } = await methodsOf(server).run(id);
  return { output: thread_id, note: t().schedules.started(run) };
}

/** Pauses or resumes a schedule. */
export async function pauseSchedule(server: Server, id: string, paused: boolean): Promise<string> {
  const { get, put } = methodsOf(server);
  const { cron, at, timezone, until, agent, input, thread, ...rest } = await get(id);
  const { keep_thread, overlap, catch_up, questions, metadata } = rest;
  const times = { cron, at, timezone, until };
  const run = { agent, input, thread, keep_thread, overlap, catch_up, questions, metadata };
  await put(id, { ...times, ...run, paused });
  return paused ? t().schedules.paused(id) : t().schedules.continued(id);
}

export async function deleteSchedule(server: Server, id: string): Promise<string> {
  await methodsOf(server).delete(id);
  return t().schedules.deleted(id);
}
