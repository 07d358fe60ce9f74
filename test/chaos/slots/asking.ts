// Requests of the owners, repeated on any server until one of them answers.

import type { z } from "zod";
import { RunRecord, Thread } from "../../../src/agent/core/records.ts";
import { Schedule } from "../../../src/engine/schedules/schedule.ts";
import { pageOf } from "../../../src/server/http/schemas.ts";
import { ask } from "../http.ts";
import type { Random } from "../random.ts";
import { pause, type World } from "../world.ts";
import { headersOf, type Owner, type PlannedSchedule } from "./plan.ts";

const ANSWER_MS = 10_000;
const PAUSE_MS = 300;

type Asking = Pick<World, "replicas" | "over">;

/** The body of the answer. Throws when a server refuses, and when time is over. */
async function insist(world: Asking, random: Random, owner: Owner, path: string, sent?: object) {
  const init: RequestInit = sent ? { method: "PUT", body: JSON.stringify(sent) } : {};
  const type: Record<string, string> = sent ? { "content-type": "application/json" } : {};
  const headers = { ...headersOf(owner), ...type };
  for (let said = ""; ; await pause(random, PAUSE_MS, world.over)) {
    if (world.over.aborted) throw new Error(`No server answers ${path}: ${said}`);
    const answer = await ask(`${random.pick(world.replicas.urls)}${path}`, { ...init, headers }, ANSWER_MS);
    if ("lost" in answer) said = answer.lost;
    else if (answer.status < 300) return answer.body;
    else if (answer.status < 500) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
    else said = JSON.stringify(answer.body);
  }
}

export async function put(
  world: Asking,
  random: Random,
  { owner, id, spec }: PlannedSchedule,
): Promise<Schedule> {
  return Schedule.parse(await insist(world, random, owner, `/schedules/${id}`, spec));
}

async function all<Item extends z.ZodType>(
  ...[world, random, owner, path, item]: [Asking, Random, Owner, string, Item]
): Promise<z.infer<Item>[]> {
  const items: z.infer<Item>[] = [];
  for (let cursor = ""; ; ) {
    const body = await insist(world, random, owner, `${path}?limit=100${cursor}`);
    const page = pageOf(item).parse(body) as { items: z.infer<Item>[]; next_cursor?: string };
    items.push(...page.items);
    if (page.next_cursor === undefined) return items;
    cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`;
  }
}

export const schedulesOf = (world: Asking, random: Random, owner: Owner) =>
  all(world, random, owner, "/schedules", Schedule);

export const threadsOf = (world: Asking, random: Random, owner: Owner) =>
  all(world, random, owner, "/threads", Thread);

export const runsOf = (world: Asking, random: Random, owner: Owner, thread: string) =>
  all(world, random, owner, `/threads/${thread}/runs`, RunRecord);
