// The suite: schedules on servers that are killed, stopped and drained, while clocks jump and the store goes away; then the verdict.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { SharedStore } from "../../support/shared-stores.ts";
import { contradictionsIn, placeOf } from "../../support/store-check.ts";
import { isCalm, strike } from "../faults.ts";
import { Journal } from "../journal.ts";
import { keep } from "../keep.ts";
import { createRandom, type Random } from "../random.ts";
import { Readers } from "../readers.ts";
import { Replicas } from "../replicas.ts";
import type { World } from "../world.ts";
import { put, schedulesOf } from "./asking.ts";
import { type MovableClock, movableClock } from "./clock.ts";
import { byOwner, MINUTE, type PlannedSchedule, planSchedules, type Span } from "./plan.ts";
import type { Blow } from "./server.ts";
import { judge } from "./verdict.ts";

export interface SlotOptions {
  /** About so many. */
  readonly slots: number;
  /** For how long the faults come. */
  readonly seconds: number;
  readonly seed: string;
  readonly shared: SharedStore;
}

export interface SlotOutcome {
  readonly counts: ReadonlyMap<string, number>;
  readonly faults: readonly string[];
  /** What there is to look into. */
  readonly folder: string | undefined;
}

const REPLICAS = 3;
/** A server holds a schedule for 20 s; one that stands still for longer has lost it. */
const CLAIM_MS = 20_000;
const MOST_SKEW_MS = 10 * MINUTE;
/** A server has looked for slots that are due, and begun to start their runs. */
const LOOKS_MS = 2_000;
const MOST_NOTES = 6;
const AT_ONCE = 8;
const MAKING_MS = 15;
const SETTLE_MS = 180_000;
const SETTLE_MS_PER_SLOT = 60;

export async function slots(options: SlotOptions): Promise<SlotOutcome> {
  const { seed, shared } = options;
  const dir = await mkdtemp(join(tmpdir(), "skein-slots-"));
  const journal = new Journal();
  const random = createRandom(seed);
  const database = await shared.database();
  const clock = await clockIn(dir);
  const skews = random.branch("skews");
  const replicas = new Replicas({
    ...{ count: REPLICAS, dir, journal, isCalm: () => isCalm({ journal }) },
    env: await configure(dir, shared.kind, database),
    program: [fileURLToPath(new URL("./server.ts", import.meta.url))],
    own: () => ({ SKEW_MS: String(skews.int(-MOST_SKEW_MS, MOST_SKEW_MS)) }),
  });
  const over = new AbortController();
  const readers = new Readers({ replicas, journal, signal: over.signal });
  const world = { replicas, readers, journal, ending: AbortSignal.abort(), over: over.signal };
  try {
    await replicas.open();
    const span = spanOf(options, clock);
    const schedules = planSchedules(options.slots, span, random.branch("plan"));
    const first = await make(schedules, random.branch("making"), world);
    await turmoil(options, { clock, span, random, world });
    await settle(schedules, random, world, over);
    await judge({ schedules, first }, random, { ...world, over: new AbortController().signal });
    for (const wrong of await contradictionsIn(placeOf(shared.kind, database)))
      journal.fault(`the store contradicts itself: ${wrong}`);
    const { counts, faults } = journal;
    return { counts, faults, folder: faults.length > 0 ? dir : undefined };
  } finally {
    over.abort();
    await replicas.close();
    if (journal.faults.length > 0) await keep(dir, journal);
    else await rm(dir, { recursive: true, force: true });
  }
}

/** All slots are in these minutes of the store's clock. */
function spanOf({ slots, seconds }: SlotOptions, clock: MovableClock): Span {
  const from = Math.ceil((clock.now() + slots * MAKING_MS) / MINUTE + 0.2) * MINUTE;
  return { from, until: from + Math.max(10, Math.round(seconds / 5)) * MINUTE };
}

async function clockIn(dir: string): Promise<MovableClock> {
  await writeFile(join(dir, "clock"), "0");
  return movableClock(join(dir, "clock"));
}

/** Returns the first slot of each. */
async function make(schedules: readonly PlannedSchedule[], random: Random, world: World) {
  const first = new Map<PlannedSchedule, number>();
  const left = schedules.values();
  const maker = async () => {
    for (const each of left) first.set(each, Date.parse((await put(world, random, each)).next_runs[0] ?? ""));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, maker));
  world.journal.count("schedules", first.size);
  return first;
}

interface Scene {
  readonly clock: MovableClock;
  readonly span: Span;
  readonly random: Random;
  readonly world: World;
}

/** Resolves when all works again, and the store's clock is past the last slot. */
async function turmoil({ seconds, shared }: SlotOptions, { clock, span, random, world }: Scene) {
  const ending = new AbortController();
  const during = { ...world, ending: ending.signal };
  const faults = ["kill", "stop", "drain", "store-restart", "store-pause", "store-cut"] as const;
  const striking = strike(
    random.branch("faults"),
    { faults, shared, leaseMs: CLAIM_MS, pauseMs: 6_000 },
    during,
  );
  const moving = moveClock(random.branch("clock"), seconds, { clock, span, world: during });
  await Promise.all([sleep(seconds * 1000), moving]);
  ending.abort();
  await striking;
}

/** In about five steps to the end of the span, with steps back in between. After each a server is struck that starts what is due. */
async function moveClock(random: Random, seconds: number, { clock, span, world }: Omit<Scene, "random">) {
  const { journal } = world;
  const step = (span.until - clock.now()) / 5;
  const stops: Promise<void>[] = [];
  for (let moves = 1; clock.now() <= span.until + MINUTE; moves++) {
    const isBack = moves % 3 === 0;
    const ms = isBack ? -random.int(0, step / 2) : random.int(0, 2 * step);
    journal.count(`moves of the store's clock ${isBack ? "back" : "forward"}`);
    journal.note(`the store's clock moves by ${ms} ms`);
    clock.move(ms);
    if (!isBack) stops.push(...(await strikeOne(random, world)));
    await sleep(random.int(0, (seconds * 1000) / 8));
  }
  await Promise.all(stops);
}

/** Strikes a server that has started runs, before it notes one of them. Returns the ends of stops: others work meanwhile. */
async function strikeOne(random: Random, { replicas }: World): Promise<Promise<void>[]> {
  const { up } = replicas;
  const [isKill, note] = [random.chance(0.7), random.int(1, MOST_NOTES)];
  if (up.length < 2) return [];
  const replica = random.pick(up);
  const strikes = (signal: Blow["signal"]) => {
    replica.child.send({ note, signal, withinMs: LOOKS_MS - 500 } satisfies Blow);
    return Promise.race([replica.exited, sleep(LOOKS_MS)]);
  };
  if (isKill) await replicas.kill(replica, 0, () => strikes("SIGKILL"));
  else await strikes("SIGSTOP");
  return isKill ? [] : [replicas.stop(replica, CLAIM_MS + 1_000)];
}

/** Resolves when no schedule has a slot left. Those that have at the end of the time are for the verdict. */
async function settle(
  schedules: readonly PlannedSchedule[],
  random: Random,
  world: World,
  over: AbortController,
): Promise<void> {
  const deadline = setTimeout(() => over.abort(), SETTLE_MS + schedules.length * SETTLE_MS_PER_SLOT);
  for (const [owner] of byOwner(schedules))
    while (!over.signal.aborted) {
      const shown = await schedulesOf(world, random, owner).catch(() => []);
      if (shown.length > 0 && shown.every(({ status }) => status !== "active")) break;
      await sleep(500);
    }
  clearTimeout(deadline);
}

async function configure(
  dir: string,
  kind: SharedStore["kind"],
  url: string,
): Promise<Record<string, string>> {
  const files = { AGENTS_FILE: join(dir, "agents.yaml"), CONFIG_FILE: join(dir, "server.yaml") };
  const server = {
    auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] },
    limits: { schedules: 100_000, waiting_threads: 100_000 },
    shutdown: { grace: "1s" },
    [kind]: { url, lease: "2s" },
  };
  // JSON is YAML.
  await writeFile(files.AGENTS_FILE, JSON.stringify({ agents: { one: { model: "scripted:test" } } }));
  await writeFile(files.CONFIG_FILE, JSON.stringify(server));
  const clock = { STORE_CLOCK: join(dir, "clock") };
  return { ...files, ...clock, PORT: "0", DATA_DIR: join(dir, "data"), STORE: kind, LOG_LEVEL: "warn" };
}

export const slotReport = ({ counts, faults, folder }: SlotOutcome) =>
  [
    ...[...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, n]) => `${name.padEnd(44)}${n}`),
    ...(faults.length === 0 ? ["No faults."] : [`${faults.length} FAULTS:`, ...faults.slice(0, 50)]),
    ...(folder === undefined ? [] : [`Logs: ${folder}`]),
  ].join("\n");
