// Crons, as LangGraph's own SDK makes, changes, finds and deletes them.

import { describe, expect, test } from "vitest";
import { postJson } from "../../support/native.ts";
import { said, started } from "./client.ts";

const NEVER = "0 0 29 2 *";
const EVERY_MINUTE = "* * * * *";

describe("a cron", () => {
  test("can be created without a thread and on one, and each is a schedule", async () => {
    const { url, client } = await started(() => ({ say: "Done." }));
    const cron = await client.crons.create("assistant", {
      ...{
        schedule: "0 9 * * MON-FRI",
        timezone: "Europe/Berlin",
        input: said("Good morning"),
        metadata: { a: 1 },
      },
      endTime: "2099-01-01T00:00:00Z",
    });
    expect(cron).toMatchObject({
      ...{ schedule: "0 9 * * MON-FRI", thread_id: null, end_time: "2099-01-01T00:00:00.000Z" },
      ...{ timezone: "Europe/Berlin", enabled: true, on_run_completed: "delete", metadata: { a: 1 } },
      payload: { input: { messages: [{ type: "human", content: "Good morning" }] } },
    });
    expect(new Date(cron.next_run_date).getTime()).toBeGreaterThan(Date.now());
    await client.threads.create({ threadId: "t1" });
    const other = await client.crons.createForThread("t1", "assistant", {
      schedule: NEVER,
      input: said("go"),
    });
    expect(other.thread_id).toBe("t1");
    await expect(
      client.crons.createForThread("unknown", "assistant", { schedule: NEVER, input: said("go") }),
    ).rejects.toThrow(/404/);
    const schedule = (await (await fetch(`${url}/schedules/${cron.cron_id}`)).json()) as object;
    expect(schedule).toMatchObject({ cron: "0 9 * * MON-FRI", input: "Good morning", keep_thread: false });
  });

  test("changes only in named fields, and can be paused, continued and deleted", async () => {
    const { client } = await started(() => ({ say: "Done." }));
    const { cron_id } = await client.crons.create("assistant", {
      ...{ schedule: NEVER, input: said("one"), metadata: { a: "1" }, onRunCompleted: "keep" },
    });
    const changed = await client.crons.update(cron_id, { schedule: "30 1 * * *", metadata: { b: "2" } });
    expect(changed).toMatchObject({ cron_id, schedule: "30 1 * * *", metadata: { a: "1", b: "2" } });
    expect(changed).toMatchObject({ on_run_completed: "keep", enabled: true });
    const paused = await client.crons.update(cron_id, { enabled: false });
    expect(paused).toMatchObject({ enabled: false, next_run_date: null, schedule: "30 1 * * *" });
    expect(await client.crons.update(cron_id, { enabled: true, input: said("two") })).toMatchObject({
      enabled: true,
      payload: { input: { messages: [{ content: "two" }] } },
    });
    await client.crons.delete(cron_id);
    expect(await client.crons.search()).toEqual([]);
    await expect(client.crons.update(cron_id, { enabled: false })).rejects.toThrow(/404/);
  });

  test("without a thread leaves none behind unless its runs are to be kept", async () => {
    const { url, client } = await started(() => ({ say: "Done." }), undefined, {
      retention: { temporary_threads: "0.2s" },
    });
    const payload = { schedule: NEVER, input: said("go") };
    const left = await client.crons.create("assistant", payload);
    const kept = await client.crons.create("assistant", { ...payload, onRunCompleted: "keep" });
    for (const { cron_id } of [left, kept])
      expect((await postJson(`${url}/schedules/${cron_id}/run`, {})).status).toBe(202);
    const ids = async () => (await client.threads.search()).map(({ thread_id }) => thread_id);
    await expect.poll(ids).toEqual([expect.stringContaining(kept.cron_id)]);
  });

  test("can be searched and counted by thread, agent, metadata and state", async () => {
    const { client } = await started(() => ({ say: "Done." }));
    await client.threads.create({ threadId: "t1" });
    const make = (nth: string) =>
      client.crons.create("assistant", { schedule: NEVER, input: said(nth), metadata: { nth } });
    const [one, two] = [await make("1"), await make("2")];
    const onThread = await client.crons.createForThread("t1", "assistant", {
      schedule: NEVER,
      input: said("3"),
    });
    await client.crons.update(two.cron_id, { enabled: false });
    const ids = async (query: Parameters<typeof client.crons.search>[0]) =>
      (await client.crons.search(query)).map(({ cron_id }) => cron_id);
    expect(await ids({ threadId: "t1" })).toEqual([onThread.cron_id]);
    expect(await ids({ enabled: false })).toEqual([two.cron_id]);
    expect(await ids({ metadata: { nth: "1" }, assistantId: "assistant" })).toEqual([one.cron_id]);
    expect(await client.crons.count()).toBe(3);
    expect(await client.crons.count({ metadata: { nth: "2" } })).toBe(1);
    const all = await ids({ sortBy: "cron_id", sortOrder: "asc" });
    expect(all).toEqual([one.cron_id, two.cron_id, onThread.cron_id].sort());
    expect(await ids({ sortBy: "cron_id", sortOrder: "asc", limit: 1, offset: 1 })).toEqual(all.slice(1, 2));
    expect(await client.crons.search({ select: ["cron_id"], threadId: "t1" })).toEqual([
      { cron_id: onThread.cron_id },
    ]);
  });

  test("is counted and found beyond the first page of crons", async () => {
    const { client } = await started([], undefined, { limits: { schedules: 101 } });
    const create = () => client.crons.create("assistant", { schedule: NEVER, input: said("go") });
    await Promise.all(Array.from({ length: 101 }, create));
    expect(await client.crons.count()).toBe(101);
    expect(await client.crons.search({ offset: 100, limit: 10 })).toHaveLength(1);
  });

  test("that is changed by several clients at once keeps each change that is accepted", async () => {
    // The memory store would answer each request before the next one.
    const { url, client } = await started([], undefined, { store: "sqlite" });
    const { cron_id } = await client.crons.create("assistant", { schedule: NEVER, input: said("go") });
    const change = async (key: string) => {
      const response = await fetch(`${url}/langgraph/runs/crons/${cron_id}`, {
        ...{ method: "PATCH", headers: { "content-type": "application/json" } },
        body: JSON.stringify({ metadata: { [key]: true } }),
      });
      return response.ok ? [key] : [];
    };
    const accepted = (await Promise.all([..."abcdefghij"].map(change))).flat();
    expect(accepted).not.toEqual([]);
    const [cron] = await client.crons.search();
    expect(Object.keys(cron?.metadata ?? {})).toEqual(expect.arrayContaining(accepted));
  });

  test.each([
    ["an unknown agent", { assistant_id: "unknown" }, 404],
    ["a line that cannot be read", { schedule: "@daily" }, 422],
    ["no input", { input: undefined }, 422],
    ["an answer as input", { input: { messages: [{ type: "ai", content: "I say" }] } }, 422],
    ["two messages", { input: { messages: ["one", "two"] } }, 422],
    ["a strategy that ends the run before", { multitask_strategy: "rollback" }, 422],
    ["a webhook", { webhook: "https://example.com" }, 422],
  ])("is refused for %s", async (_, change, status) => {
    const { url } = await started([]);
    const body = { assistant_id: "assistant", schedule: EVERY_MINUTE, input: said("go"), ...change };
    expect((await postJson(`${url}/langgraph/runs/crons`, body)).status).toBe(status);
  });

  test("does not change if the change is invalid: a schedule without a line, or too much metadata", async () => {
    const { url, client } = await started([]);
    const send = (method: string, path: string, body: object) =>
      fetch(url + path, {
        method,
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const keys = (from: number, count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`key${from + at}`, at]));
    await send("PUT", "/schedules/once", { at: "2090-01-01T00:00:00Z", input: "go", paused: true });
    const payload = { schedule: NEVER, input: said("go"), metadata: keys(0, 20) };
    const { cron_id } = await client.crons.create("assistant", payload);
    const changes = [
      await send("PATCH", "/langgraph/runs/crons/once", { enabled: true }),
      await send("PATCH", `/langgraph/runs/crons/${cron_id}`, { metadata: keys(20, 11), enabled: false }),
    ];
    expect(changes.map(({ status }) => status)).toEqual([422, 422]);
    expect(await changes[1]?.text()).toContain("must have at most 30 keys");
    expect(await (await fetch(`${url}/schedules/once`)).json()).toMatchObject({ paused: true });
    expect(await client.crons.search()).toMatchObject([{ enabled: true }]);
  });
});
