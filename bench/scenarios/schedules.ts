// Many schedules of one tenant that are due at once: how much later a neighbour's schedules start, and how much longer
// its runs take to start.

import { setTimeout as sleep } from "node:timers/promises";
import type { Server } from "../children.ts";
import type { Row, Scenario } from "../rig.ts";
import { quantile } from "../stats.ts";

/** A user can have at most 100 schedules. */
const [USERS, EACH] = [100, 100];
/** One per second in the minute in which the other tenant's schedules are due. */
const SLOTS = 30;
/** Enough time to create all schedules beforehand. */
const AHEAD_MS = 90_000;
const INPUT = "bench 1 0 1 0 0.";
const AT_ONCE = 8;
const ASK_MS = 500;
const MAX_LATE_MS = 120_000;

type Ask = (method: string, path: string, body?: object) => Promise<Response>;

const asUser =
  ({ port }: Server, tenant: string, user: string): Ask =>
  async (method, path, body) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: {
        ...{ "x-skein-tenant": tenant, "x-skein-user": user, "x-skein-scopes": "read,run" },
        ...(body ? { "content-type": "application/json" } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    if (response.ok) return response;
    throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  };

export const schedules: Scenario = {
  name: "schedules",
  about:
    "how late tenant B's schedules and runs begin: alone (first column), and while 10,000 of tenant A are due in the same minute",
  async run({ targets, children }) {
    const env = { AUTH: "header", TRUSTED_PROXIES: "127.0.0.1" };
    const server = await targets.skein.start([], { env });
    const alone = await neighbour(server, "alone", Date.now() + 2_000);
    const begin = Date.now() + AHEAD_MS;
    await fill(server, begin);
    if (Date.now() > begin)
      throw new Error("The machine is too slow: the schedules were due before all of them existed.");
    const beside = await neighbour(server, "beside", begin);
    const left = await started(server);
    await children.stop(server);
    return [
      ...rows("a schedule's run begins after its time, ms", alone.late, beside.late),
      ...rows("first byte of a run, ms", alone.first, beside.first),
      { figure: `slots of tenant A that were started by then, of ${USERS * EACH}`, skein: [left] },
    ];
  },
};

function rows(figure: string, alone: readonly number[], beside: readonly number[]): Row[] {
  return [0.5, 0.99].map((share) => {
    const [bare, skein] = [quantile(alone, share), quantile(beside, share)];
    return { figure: `${figure}: p${share * 100}`, bare: [bare], skein: [skein], ratio: [skein / bare] };
  });
}

/** Creates the schedules of tenant A, spread over one minute. */
async function fill(server: Server, begin: number): Promise<void> {
  const users = Array.from({ length: USERS }, (_, n) => n);
  const work = async () => {
    for (let user = users.pop(); user !== undefined; user = users.pop()) {
      const ask = asUser(server, "many", `u${user}`);
      for (let n = 0; n < EACH; n++) {
        const at = new Date(begin + ((n * USERS + user) * 60_000) / (USERS * EACH)).toISOString();
        await ask("PUT", `/schedules/s${n}`, { at, input: INPUT, keep_thread: false });
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** Returns how many of tenant A's slots have started a run. */
async function started(server: Server): Promise<number> {
  let count = 0;
  for (let user = 0; user < USERS; user++) {
    const response = await asUser(server, "many", `u${user}`)("GET", `/schedules?limit=${EACH}`);
    const { items } = (await response.json()) as { items: { last_slot?: { outcome: string } }[] };
    count += items.filter(({ last_slot }) => last_slot?.outcome === "started").length;
  }
  return count;
}

/** Measures tenant B from `begin` on: how late its schedules start their runs, and how long its own runs take to start. */
async function neighbour(server: Server, name: string, begin: number) {
  const ask = asUser(server, "neighbour", name);
  const times = Array.from({ length: SLOTS }, (_, n) => begin + n * 1_000);
  for (const [n, time] of times.entries())
    await ask("PUT", `/schedules/${name}-${n}`, { at: new Date(time).toISOString(), input: INPUT });
  await sleep(Math.max(0, begin - Date.now()));
  const first: number[] = [];
  for (let n = 0; Date.now() < begin + SLOTS * 1_000; n++) {
    const began = performance.now();
    const response = await ask("POST", `/threads/${name}-${n}/runs`, { input: INPUT });
    await response.body?.getReader().read();
    first.push(performance.now() - began);
    await response.body?.cancel().catch(() => {});
    await sleep(ASK_MS);
  }
  return { first, late: await Promise.all(times.map((time, n) => lateness(ask, `${name}-${n}`, time))) };
}

async function lateness(ask: Ask, id: string, time: number): Promise<number> {
  for (const end = time + MAX_LATE_MS; Date.now() < end; ) {
    const schedule = (await (await ask("GET", `/schedules/${id}`)).json()) as {
      last_run?: { thread_id: string; run_id: string };
    };
    if (schedule.last_run) {
      const { thread_id, run_id } = schedule.last_run;
      const run = (await (await ask("GET", `/threads/${thread_id}/runs/${run_id}`)).json()) as {
        created_at: string;
      };
      return Date.parse(run.created_at) - time;
    }
    await sleep(ASK_MS);
  }
  throw new Error(`Schedule ${id} has started no run.`);
}
