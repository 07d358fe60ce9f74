// Schedules: each slot starts one run, over any number of processes, and a refused start is shown.

import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { AppError } from "../../../src/agent/core/errors.ts";
import { askFor } from "../../../src/agent/core/open-interrupts.ts";
import type { RunRecord } from "../../../src/agent/core/records.ts";
import { defineTool, done, interrupted } from "../../../src/agent/core/tool.ts";
import {
  createSchedules,
  type ScheduleOptions,
  type Schedules,
} from "../../../src/engine/schedules/index.ts";
import { ScheduleSpec } from "../../../src/engine/schedules/schedule.ts";
import type { AllStores as Stores } from "../../../src/engine/stores/all-stores.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { SILENT } from "../../../src/lib/logger.ts";
import { DEFINITION, managed } from "../runs/managed.ts";
import { ADA } from "../stores/fixture.ts";

const START = Date.parse("2026-05-04T08:59:30Z");
const DAY = 24 * 3_600_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: START });
  return () => vi.useRealTimers();
});

/** Waits until `check` returns something. Each check moves the clock a little. */
const until = <T>(check: () => Promise<T>) => vi.waitUntil(check, { timeout: 60_000, interval: 20 });

interface Setup {
  readonly stores?: Stores;
  readonly documents?: ScheduleOptions["documents"];
  readonly processes?: number;
  readonly engine?: Parameters<typeof managed>[1];
  readonly endOfKey?: ScheduleOptions["endOfKey"];
  readonly announce?: ScheduleOptions["announce"];
  readonly onPaused?: ScheduleOptions["onPaused"];
}

/** Schedules of several processes on the same stores, open and closed when the test has finished. */
async function open({
  stores = createMemoryStores(),
  documents,
  processes = 1,
  engine,
  endOfKey,
  announce,
  onPaused,
}: Setup = {}) {
  const paused: string[] = [];
  const all: Schedules[] = [];
  for (let number = 0; number < processes; number++) {
    const { runs } = managed(stores, engine);
    await runs.open();
    const schedules = createSchedules({
      ...{ documents: documents ?? stores.documents, runs, logger: SILENT, perUser: 3, everyMs: 20 },
      endOfKey: endOfKey ?? (async () => undefined),
      announce: announce ?? (async () => {}),
      onPaused: onPaused ?? (async (_owner, { id, pause }) => void paused.push(`${id} ${pause?.reason}`)),
    });
    schedules.open();
    onTestFinished(() => schedules.close());
    all.push(schedules);
  }
  const [schedules] = all as [Schedules, ...Schedules[]];
  const put = (id: string, spec: object) =>
    schedules.put(ADA, id, ScheduleSpec.parse({ cron: "0 9 * * *", input: "go", ...spec }));
  const get = async (id: string) => (await schedules.get(ADA, id)).schedule;
  return { stores, schedules, put, get, paused };
}

/** Runs of all threads whose metadata name the schedule, in the order of their slots. */
async function runsOf(stores: Stores, id: string): Promise<RunRecord[]> {
  const { items: threads } = await stores.threads.list(ADA, { limit: 100 });
  const lists = await Promise.all(threads.map((each) => stores.runs.list(ADA, each.id, { limit: 100 })));
  const runs = lists.flatMap(({ items }) => items).filter(({ metadata }) => metadata.schedule === id);
  return runs.toSorted((a, b) => slotOf(a).localeCompare(slotOf(b)));
}

const slotOf = ({ metadata }: RunRecord) => String(metadata.scheduled_for ?? "");
const days = (runs: readonly RunRecord[]) => runs.map((run) => slotOf(run).slice(0, 10));

test("a slot starts a run on its own thread, with the schedule in its metadata, and the next slot waits", async () => {
  const { stores, put, get } = await open();
  const { schedule } = await put("briefing", { metadata: { team: "a" } });
  expect(schedule).toMatchObject({
    status: "active",
    next_runs: [0, 1, 2, 3, 4].map((n) => iso(START + 30_000 + n * DAY)),
  });
  vi.setSystemTime(START + 31_000);
  await until(async () => (await get("briefing")).last_slot?.outcome === "started");
  const [run] = await runsOf(stores, "briefing");
  expect(run).toMatchObject({
    thread_id: "briefing_20260504T090000Z",
    metadata: { team: "a", schedule: "briefing", scheduled_for: "2026-05-04T09:00:00.000Z" },
  });
  expect(await get("briefing")).toMatchObject({
    last_run: { run_id: run?.id, scheduled_for: "2026-05-04T09:00:00.000Z" },
    next_runs: expect.arrayContaining(["2026-05-05T09:00:00.000Z"]),
  });
});

test("with `keep_thread: false`, each thread is announced before its run, and a run whose thread is deleted counts as done", async () => {
  const announced: string[] = [];
  const { stores, put, get } = await open({
    announce: async (_owner, thread_id) => {
      announced.push(thread_id);
      if (announced.length > 1) throw new AppError("events_expired", "It is deleted.");
    },
  });
  await put("kept", {});
  await put("briefing", { keep_thread: false });
  vi.setSystemTime(START + 31_000);
  await until(async () => (await get("briefing")).last_slot?.outcome === "started");
  await until(async () => (await get("kept")).last_slot?.outcome === "started");
  expect(days(await runsOf(stores, "briefing"))).toEqual(["2026-05-04"]);
  await until(async () => (await runsOf(stores, "briefing"))[0]?.status === "success");
  vi.setSystemTime(START + DAY + 31_000);
  await until(async () => (await get("briefing")).next_runs[0] === iso(START + 30_000 + 2 * DAY));
  expect(await get("briefing")).toMatchObject({ status: "active", last_slot: { outcome: "started" } });
  expect(announced).toEqual(["briefing_20260504T090000Z", "briefing_20260505T090000Z"]);
  await expect(put("other", { thread: "t1", keep_thread: false })).rejects.toThrow(/keep_thread/);
});

test.each([
  ["all", ["2026-05-04", "2026-05-05", "2026-05-06", "2026-05-07"]],
  ["latest", ["2026-05-07"]],
  ["none", []],
])(
  "after days without a process, `catch_up: %s` starts the slots %j, each once across three processes",
  async (catch_up, expected) => {
    const { stores, put, get } = await open({ processes: 3 });
    await put("daily", { catch_up, overlap: "allow" });
    vi.setSystemTime(START + 3 * DAY + 600_000);
    await until(async () => (await get("daily")).next_runs[0] === "2026-05-08T09:00:00.000Z");
    expect(days(await runsOf(stores, "daily"))).toEqual(expected);
  },
);

test("a process that dies between starting and recording a run starts no second run", async () => {
  const stores = createMemoryStores();
  let failures = 0;
  const documents: ScheduleOptions["documents"] = {
    ...stores.documents,
    write: async (collection, writes, options) => {
      const isNote = collection.kind === "schedules" && writes[0]?.body?.includes('"outcome"');
      if (isNote && ++failures <= 2) throw new Error("The process is killed.");
      return stores.documents.write(collection, writes, options);
    },
  };
  const { put, get } = await open({ stores, documents });
  await put("once", { at: iso(START + 30_000), cron: undefined });
  // Each failure ends with the lease, a minute later.
  await until(async () => {
    vi.setSystemTime(Date.now() + 61_000);
    return (await get("once")).status === "completed";
  });
  expect(failures).toBeGreaterThan(2);
  expect(await runsOf(stores, "once")).toHaveLength(1);
});

test("a failed start is repeated for the same slot, which is then neither missed nor followed by another", async () => {
  let failures = 0;
  const find = () => {
    if (++failures <= 3) throw new AppError("unavailable", "The store is away.");
    return DEFINITION;
  };
  const { stores, put, get } = await open({ engine: { agents: { find } } });
  await put("minutely", { cron: "* * * * *", catch_up: "none", overlap: "skip", until: iso(START + 45_000) });
  await until(async () => {
    vi.setSystemTime(Date.now() + 30_000);
    return (await get("minutely")).last_run;
  });
  expect(failures).toBeGreaterThan(3);
  expect((await runsOf(stores, "minutely")).map(slotOf)).toEqual(["2026-05-04T09:00:00.000Z"]);
});

test("the store's clock decides which slot is due, not that of a process that is ahead", async () => {
  const stores = createMemoryStores();
  let behind = 0;
  const documents: ScheduleOptions["documents"] = {
    ...stores.documents,
    read: async (collection, keys) => {
      const read = await stores.documents.read(collection, keys);
      return { ...read, now: read.now - behind };
    },
  };
  const { put, get } = await open({ stores, documents });
  await put("hourly", { cron: "0 * * * *" });
  behind = 3 * 3_600_000;
  vi.setSystemTime(START + 31_000 + behind);
  await until(async () => (await get("hourly")).last_run);
  expect((await get("hourly")).last_run?.scheduled_for).toBe("2026-05-04T09:00:00.000Z");
});

test("with `catch_up: all`, a limit that refuses for a while loses no slot", async () => {
  let refusals = 0;
  const find = () => {
    if (++refusals <= 4) throw new AppError("limit_exceeded", "Too many runs.");
    return DEFINITION;
  };
  const { stores, put, get } = await open({ engine: { agents: { find } } });
  const end = iso(START + 3_600_000);
  await put("often", { cron: "*/20 * * * *", catch_up: "all", overlap: "allow", until: end });
  vi.setSystemTime(START + 2 * 3_600_000);
  await until(async () => {
    vi.setSystemTime(Date.now() + 2_000);
    return (await get("often")).status === "completed";
  });
  expect((await runsOf(stores, "often")).map((run) => slotOf(run).slice(11, 16))).toEqual([
    "09:00",
    "09:20",
    "09:40",
  ]);
});

test("with `overlap: queue`, a limit that refuses for longer than until the next slot does not lose the first", async () => {
  const find = () => {
    if (Date.now() < START + 150_000) throw new AppError("limit_exceeded", "Too many runs.");
    return DEFINITION;
  };
  const { stores, put, get } = await open({ engine: { agents: { find } } });
  await put("minutely", { cron: "* * * * *", overlap: "queue" });
  await until(async () => {
    vi.setSystemTime(Date.now() + 2_000);
    return (await get("minutely")).last_run;
  });
  expect((await runsOf(stores, "minutely")).map(slotOf)[0]).toBe("2026-05-04T09:00:00.000Z");
});

/** A tool that waits until the test says so. */
function gate() {
  const opened = Promise.withResolvers<string>();
  const tool = defineTool({
    ...{ name: "wait", description: "Waits.", parameters: z.object({}) },
    execute: () => opened.promise,
  });
  return { tool, open: () => opened.resolve("ok") };
}

test.each([
  ["skip", ["2026-05-04"]],
  ["allow", ["2026-05-04", "2026-05-05"]],
])("while the previous run is active, `overlap: %s` leaves the runs of %j", async (overlap, expected) => {
  const { tool, open: end } = gate();
  const script = [{ call: [{ tool: "wait" }] }, { say: "done" }];
  const { stores, put, get } = await open({ engine: { tools: [tool], script } });
  onTestFinished(end);
  await put("slow", { overlap });
  vi.setSystemTime(START + 31_000);
  await until(async () => (await get("slow")).last_run);
  // A schedule that is replaced still knows its last run.
  expect((await put("slow", { overlap, input: "changed" })).schedule.last_slot?.outcome).toBe("started");
  vi.setSystemTime(START + DAY + 31_000);
  await until(async () => (await get("slow")).last_slot?.scheduled_for === "2026-05-05T09:00:00.000Z");
  expect(days(await runsOf(stores, "slow"))).toEqual(expected);
  if (overlap === "skip")
    expect((await get("slow")).last_slot).toMatchObject({ outcome: "skipped", message: /had not ended/ });
});

/** A tool that asks a person first. */
const ASKING = defineTool({
  ...{ name: "launch", description: "Launches.", parameters: z.object({}) },
  async *execute(_args, call, run) {
    const answer = yield* askFor({ call, kind: "approval", prompt: "Launch?" }, run);
    return answer ? done(answer.decision) : interrupted();
  },
});

test.each([
  ["wait", "skipped"],
  ["deny", "started"],
])("if its run asks, `questions: %s` leaves the next slot %s", async (questions, outcome) => {
  const script = [{ call: [{ tool: "launch" }] }, { say: "done" }];
  const { stores, put, get } = await open({ engine: { tools: [ASKING], script } });
  await put("asking", { questions });
  vi.setSystemTime(START + 31_000);
  await until(async () =>
    ["interrupted", "success"].includes((await runsOf(stores, "asking"))[0]?.status ?? ""),
  );
  await until(async () => (await get("asking")).last_run);
  vi.setSystemTime(START + DAY + 31_000);
  await until(async () => (await get("asking")).last_slot?.scheduled_for === "2026-05-05T09:00:00.000Z");
  expect((await get("asking")).last_slot?.outcome).toBe(outcome);
});

test("with `overlap: queue`, a slot waits for the previous run and does not count as missed", async () => {
  const { tool, open: end } = gate();
  const script = [{ call: [{ tool: "wait" }] }, { say: "done" }];
  const { stores, put, get } = await open({ engine: { tools: [tool], script } });
  await put("slow", { overlap: "queue", catch_up: "none" });
  vi.setSystemTime(START + 31_000);
  await until(async () => (await get("slow")).last_run);
  vi.setSystemTime(START + DAY + 31_000);
  await until(async () => (await get("slow")).pending_slot?.message.includes("had not ended"));
  const changed = await put("slow", { overlap: "queue", catch_up: "none", input: "changed" });
  expect(changed.schedule.pending_slot?.message).toContain("had not ended");
  end();
  await until(async () => {
    vi.setSystemTime(Date.now() + 300_000);
    return (await get("slow")).last_run?.scheduled_for === "2026-05-05T09:00:00.000Z";
  });
  expect(days(await runsOf(stores, "slow"))).toEqual(["2026-05-04", "2026-05-05"]);
});

test("a revoked key pauses its schedules, which report the reason and start nothing", async () => {
  const revoked = new AppError("credentials_revoked", "The API key was revoked.");
  const { stores, schedules, get, paused } = await open({ endOfKey: async () => revoked });
  await schedules.put(ADA, "mine", ScheduleSpec.parse({ cron: "0 9 * * *", input: "go" }), {
    api_key: "key_1",
  });
  vi.setSystemTime(START + 31_000);
  await until(async () => (await get("mine")).status === "paused");
  expect((await get("mine")).pause).toMatchObject({
    reason: "credentials_ended",
    message: "The API key was revoked.",
  });
  // It is reported after it is stored.
  await until(async () => paused.length > 0);
  expect(paused).toEqual(["mine credentials_ended"]);
  expect(await runsOf(stores, "mine")).toEqual([]);
});

test("a pause is reported once it is stored, and again if the process dies before that", async () => {
  const stored: unknown[] = [];
  const revoked = new AppError("credentials_revoked", "The API key was revoked.");
  const { schedules, get } = await open({
    endOfKey: async () => revoked,
    async onPaused(_owner, { id, pause }) {
      stored.push((await get(id)).status, pause?.since);
      if (stored.length === 2) throw new Error("The process dies.");
    },
  });
  const spec = ScheduleSpec.parse({ cron: "0 9 * * *", input: "go" });
  await schedules.put(ADA, "mine", spec, { api_key: "key_1" });
  vi.setSystemTime(START + 31_000);
  await until(async () => {
    vi.setSystemTime(Date.now() + 1_000);
    return stored.length > 2;
  });
  const since = (await get("mine")).pause?.since;
  expect(stored).toEqual(["paused", since, "paused", since]);
  vi.setSystemTime(START + DAY);
  await schedules.close();
  expect(stored).toHaveLength(4);
});

test("an agent that is missing for ten minutes pauses its schedules, but not one that returns earlier", async () => {
  let isGone = false;
  const missing = "There is no agent `helper`.";
  const find = () => {
    if (isGone) throw new AppError("not_found", missing);
    return DEFINITION;
  };
  const { put, get } = await open({ engine: { agents: { find } } });
  await put("mine", { agent: "helper", overlap: "allow" });
  isGone = true;
  vi.setSystemTime(START + 31_000);
  await until(async () => (await get("mine")).pending_slot?.message === missing);
  vi.setSystemTime(START + 9 * 60_000);
  isGone = false;
  await until(async () => (await get("mine")).last_run);
  expect(await get("mine")).toMatchObject({ status: "active" });
  isGone = true;
  vi.setSystemTime(START + DAY + 31_000);
  await until(async () => (await get("mine")).pending_slot?.message === missing);
  vi.setSystemTime(START + DAY + 12 * 60_000);
  await until(async () => (await get("mine")).status === "paused");
  expect((await get("mine")).pause).toMatchObject({
    reason: "start_refused",
    message: missing,
  });
  await expect(put("other", { agent: "helper" })).rejects.toThrow(`agent: ${missing}`);
});

test("a slot whose schedule is deleted while its run starts leaves no run behind", async () => {
  const setup = await open({
    async announce() {
      await setup.schedules.deleteAll(ADA);
    },
  });
  const { stores, put } = setup;
  await put("mine", { keep_thread: false });
  vi.setSystemTime(START + 31_000);
  await until(async () => (await setup.schedules.list(ADA, { limit: 1 })).items.length === 0);
  await setup.schedules.close();
  expect((await stores.threads.list(ADA, { limit: 10 })).items).toEqual([]);
});

test("a start that a limit refuses is retried, and its slot fails when the next one is due", async () => {
  let attempts = 0;
  const find = () => {
    attempts++;
    throw new AppError("limit_exceeded", "The budget of today is used up.");
  };
  const { put, get } = await open({ engine: { agents: { find } } });
  await put("hourly", { cron: "0 * * * *" });
  await until(async () => {
    vi.setSystemTime(Date.now() + 60_000);
    return (await get("hourly")).last_slot;
  });
  expect((await get("hourly")).last_slot).toMatchObject({
    outcome: "failed",
    message: "The budget of today is used up.",
  });
  expect(attempts).toBeGreaterThan(2);
  expect(await get("hourly")).toMatchObject({ status: "active" });
});

test("changing the input keeps the due slot; a pause skips its slots", async () => {
  const { stores, schedules, put, get } = await open();
  await put("daily", {});
  await schedules.close();
  vi.setSystemTime(START + 31_000);
  expect((await put("daily", { input: "changed" })).schedule.next_runs[0]).toBe("2026-05-04T09:00:00.000Z");
  const moved = (await put("daily", { timezone: "Asia/Tokyo" })).schedule;
  expect(moved.next_runs[0]).toBe("2026-05-05T00:00:00.000Z");
  expect((await put("daily", { paused: true })).schedule).toMatchObject({ status: "paused", next_runs: [] });
  vi.setSystemTime(START + 2 * DAY);
  expect((await put("daily", {})).schedule.next_runs[0]).toBe("2026-05-06T09:00:00.000Z");
  expect(await get("daily")).not.toHaveProperty("pause");
  expect(await runsOf(stores, "daily")).toEqual([]);
});

test("a manual run is started in addition to the slots, once per key", async () => {
  const { stores, schedules, put } = await open();
  await put("daily", { paused: true });
  const first = await schedules.run(ADA, "daily", "k1");
  expect((await schedules.run(ADA, "daily", "k1")).id).toBe(first.id);
  expect((await schedules.run(ADA, "daily", undefined)).id).not.toBe(first.id);
  expect(await runsOf(stores, "daily")).toHaveLength(2);
});

test("invalid schedules are refused: a past time, a schedule above the limit, an old version", async () => {
  const { schedules, put } = await open();
  await expect(put("past", { cron: undefined, at: "2020-01-01T00:00:00Z" })).rejects.toThrow(
    "no time is left",
  );
  await expect(put("both", { at: "2030-01-01T00:00:00Z" })).rejects.toThrow("either `cron`");
  const { version } = await put("a", {});
  await put("a", { input: "other" });
  const spec = ScheduleSpec.parse({ cron: "0 9 * * *", input: "go" });
  await expect(schedules.put(ADA, "a", spec, { seen: version })).rejects.toMatchObject({
    code: "precondition_failed",
  });
  await put("b", {});
  await put("c", {});
  await expect(put("d", {})).rejects.toMatchObject({ code: "limit_exceeded" });
  expect(await schedules.deleteAll(ADA)).toBe(3);
  await expect(schedules.get(ADA, "a")).rejects.toMatchObject({ code: "not_found" });
});

const iso = (time: number) => new Date(time).toISOString();
