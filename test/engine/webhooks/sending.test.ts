// What is sent of what the store keeps: by which process, in which turn, and until when.

import { randomBytes } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { AppError } from "../../../src/agent/core/errors.ts";
import type { RunRecord, Thread } from "../../../src/agent/core/records.ts";
import type { BudgetState } from "../../../src/engine/quotas/near.ts";
import type { EndingRun } from "../../../src/engine/runs/services.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { deliveriesOf } from "../../../src/engine/webhooks/delivery-store.ts";
import { createWebhooks, type WebhookOptions } from "../../../src/engine/webhooks/index.ts";
import { hostList } from "../../../src/lib/hosts.ts";
import { wrappedMethods } from "../../../src/lib/wrapped-methods.ts";
import type { Interrupt } from "../../../src/protocol/interrupt.ts";
import { webhookInbox } from "../../support/webhook-inbox.ts";

const HOUR = 3_600_000;
const ADA = { tenant: "acme", user: "ada" };
const SPEC = { on: ["run.ended" as const], ordered: false, paused: false };
const SECRET = `whsec_${randomBytes(32).toString("base64")}`;
const USAGE = { input_tokens: 1, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 };

const ending = (tenant: string, run: number): EndingRun => ({
  owner: { tenant, user: "ada" },
  run: { id: `${tenant}${run}`, thread_id: "t", agent: "helper" } as RunRecord,
  end: {
    event: "done",
    data: { status: "interrupted", stop_reason: "interrupt", usage: USAGE },
  } as EndingRun["end"],
  interrupts: [{ id: "i1", kind: "question", name: "ask_user" } as Interrupt],
  isChild: false,
});

/** A store whose clock a test moves on, and processes that share it. Tenants take turns by this clock, so it never stands still. */
function deployment() {
  let time = 0;
  const memory = createMemoryStores({ now: () => Date.now() + time });
  const calls = { count: 0, failing: -1, lists: 0, failingWrites: 0 };
  const documents = wrappedMethods(memory.documents, (name, method) => async (...args) => {
    if (name === "list") calls.lists++;
    const fails = name === "write" && calls.failingWrites > 0 && calls.failingWrites--;
    if (calls.count++ === calls.failing || fails)
      throw new AppError("unavailable", "The store does not answer.");
    return method(...args);
  });
  const stores = { ...memory, documents };
  onTestFinished(() => stores.close());
  const status = new Map<string, RunRecord["status"] | "deleted">();
  const lines: object[] = [];
  const log = (line: object, text: string) => void lines.push({ ...line, text });
  const open = async (options: Partial<WebhookOptions> = {}) => {
    const webhooks = createWebhooks({
      documents: stores.documents,
      runs: {
        async get(_, __, id) {
          const now = status.get(id) ?? "interrupted";
          return now === "deleted" ? undefined : ({ status: now } as RunRecord);
        },
      },
      threads: { get: async () => ({ status: "interrupted" }) as Thread },
      ...{ isDurable: true, maxWebhooks: 10, allow: hostList("127.0.0.1") },
      logger: { info: log, warn: log, error: log },
      onOutcome() {},
      ...options,
    });
    await webhooks.open();
    onTestFinished(() => webhooks.close());
    return webhooks;
  };
  const pass = (ms: number) => {
    time += ms;
  };
  /** With Ada's webhook `mine`, to which an inbox answers this. */
  async function openMine(spec: object, ...answers: Parameters<typeof webhookInbox>) {
    const inbox = await webhookInbox(...answers);
    const opened = await open();
    const put = () => opened.webhooks.put(ADA, "mine", { ...SPEC, url: inbox.url, ...spec });
    await put();
    const mine = async () => (await opened.deliveries.list(ADA, "mine", { limit: 10 })).items;
    const near = (id: string) => opened.emit(ADA, { type: "budget.near", data: {} }, id);
    return { ...opened, inbox, put, mine, near };
  }
  return { stores, status, lines, open, openMine, pass, calls };
}

const NEAR = { on: ["budget.near"] };

test("deliveries are sent for tenants in turn, however many one of them has", async () => {
  const { open } = deployment();
  const inbox = await webhookInbox(...Array<"never">(40).fill("never"));
  const { beforeEnd } = await open({ operator: { url: inbox.url, secret: SECRET } });
  const flood = async (tenant: string, count: number) => {
    for (let run = 0; run < count; run++) (await beforeEnd(ending(tenant, run)))();
  };
  await flood("flood", 200);
  await expect.poll(() => inbox.received.length).toBeGreaterThan(0);
  await flood("other", 2);
  const tenants = () => inbox.received.map(({ message }) => message.data.tenant);
  const others = () => tenants().filter((tenant) => tenant === "other");
  inbox.answerAll();
  await expect.poll(others).toHaveLength(2);
  expect(tenants().lastIndexOf("other")).toBeLessThan(100);
});

test("a delivery whose process died before reporting the end is sent by another one, if the run ended that way", async () => {
  const { stores, open, status, pass } = deployment();
  const inbox = await webhookInbox();
  const options = { operator: { url: inbox.url, secret: SECRET } };
  const dying = await open(options);
  await dying.webhooks.put(ADA, "mine", { ...SPEC, url: inbox.url });
  for (const run of [1, 2, 3]) await dying.beforeEnd(ending("acme", run));
  await dying.close();
  status.set("acme2", "success").set("acme3", "running");
  const next = await open(options);
  expect(inbox.received).toEqual([]);
  pass(HOUR);
  next.wake();
  const told = () => inbox.received.map(({ message: { type, data } }) => `${type} ${data.run_id}`).sort();
  await expect.poll(told).toEqual(["run.ended acme1", "run.interrupted acme1"]);
  // That of the run that ended otherwise is forgotten, and that of the run in progress waits for its end.
  const left = async (kind: string, user: object) =>
    (await stores.documents.list({ kind, tenant: "acme", ...user }))
      .map(({ body }) => JSON.parse(body).run_id)
      .sort();
  await expect.poll(() => left("webhook_deliveries", { user: "ada" })).toEqual(["acme1", "acme3"]);
  await expect.poll(() => left("notifications", {})).toEqual(["acme3"]);
  status.set("acme3", "interrupted");
  pass(HOUR);
  next.wake();
  await expect.poll(told).toHaveLength(4);
});

test("a notification is sent even if the clock was set back since", async () => {
  const { open, pass } = deployment();
  const inbox = await webhookInbox(...Array<number>(100).fill(500));
  const { beforeEnd, wake } = await open({ operator: { url: inbox.url, secret: SECRET } });
  pass(24 * HOUR);
  (await beforeEnd(ending("acme", 1)))();
  await expect.poll(() => inbox.received.length).toBeGreaterThan(0);
  pass(-24 * HOUR);
  // One attempt may have been on its way.
  const before = inbox.received.length + 1;
  wake();
  await expect.poll(() => inbox.received.length).toBeGreaterThan(before);
});

test("a webhook is disabled after a day of failures only, with the reason, until it is put again", async () => {
  const { openMine, lines, pass } = deployment();
  const { webhooks, wake, put, mine, near } = await openMine(NEAR, ...Array<number>(100).fill(500));
  await near("first");
  const health = async () => (await webhooks.get(ADA, "mine"))?.webhook;
  await expect.poll(async () => (await health())?.failing_since).toBeDefined();
  for (const attempts of [2, 3, 4]) {
    pass(HOUR);
    wake();
    // The pause before a retry is short enough that there may have been one in between.
    await expect.poll(async () => (await mine())[0]?.attempts).toBeGreaterThanOrEqual(attempts);
  }
  expect((await health())?.disabled).toBeUndefined();
  pass(25 * HOUR);
  wake();
  await expect.poll(async () => (await health())?.disabled?.reason).toContain("it answered 500");
  const line = expect.objectContaining({ text: "a webhook was disabled", webhook: "mine" });
  await expect.poll(() => lines).toContainEqual(line);
  expect(JSON.stringify(lines)).not.toMatch(/whsec_|hidden/);
  expect(await mine()).toMatchObject([{ state: "failed" }]);
  await near("second");
  expect(await mine()).toHaveLength(1);
  await put();
  expect((await health())?.disabled).toBeUndefined();
});

test("what waits for a webhook that is paused meanwhile is given up, and is retried for a day once it is sent again", async () => {
  const { openMine, pass } = deployment();
  const { webhooks, deliveries, wake, inbox, put, mine, near } = await openMine(
    NEAR,
    ...Array<number>(50).fill(500),
  );
  await near("first");
  await expect.poll(() => inbox.received.length).toBeGreaterThan(0);
  await webhooks.put(ADA, "mine", { ...SPEC, on: ["budget.near"], url: inbox.url, paused: true });
  pass(HOUR);
  wake();
  await expect.poll(mine).toMatchObject([{ state: "failed", failure: "the webhook is paused" }]);
  await put();
  pass(25 * HOUR);
  const [{ id = "" } = {}] = await mine();
  await deliveries.again(ADA, "mine", id);
  wake();
  await expect.poll(mine).toMatchObject([{ state: "pending", http_status: 500 }]);
});

test("a budget's warning is sent once in its period, even days later by another process", async () => {
  const { openMine, open, pass } = deployment();
  const { onNear, inbox, near } = await openMine(NEAR);
  const warning = { id: "june", until: Date.now() + 20 * 24 * HOUR, details: { of: "user" } } as BudgetState;
  const told = () => inbox.received.map(({ message }) => message.data.of ?? "other").sort();
  const others = async (...ids: string[]) => {
    for (const id of ids) {
      const before = inbox.received.length;
      await near(id);
      await expect.poll(() => inbox.received.length).toBeGreaterThan(before);
    }
  };
  onNear(ADA, warning);
  await expect.poll(told).toEqual(["user"]);
  pass(9 * 24 * HOUR);
  // The process that sends these also deletes what is no longer kept.
  await others("1", "2");
  (await open()).onNear(ADA, warning);
  await others("3", "4");
  expect(told()).toEqual(["other", "other", "other", "other", "user"]);
});

test("a secret that was replaced no longer signs after a day", async () => {
  const { openMine, pass } = deployment();
  const { webhooks, inbox, near } = await openMine(NEAR);
  await webhooks.rotate(ADA, "mine");
  const signatures = () =>
    inbox.received.map(({ headers }) => String(headers["webhook-signature"]).split(" ").length);
  await near("first");
  await expect.poll(signatures).toEqual([2]);
  pass(25 * HOUR);
  await near("second");
  await expect.poll(signatures).toEqual([2, 1]);
});

test("dead letters are kept for seven days and then deleted", async () => {
  const { openMine, pass } = deployment();
  const { wake, mine, near } = await openMine(NEAR, 404);
  await near("first");
  await expect.poll(mine).toMatchObject([{ state: "failed" }]);
  pass(6 * 24 * HOUR);
  wake();
  await near("second");
  await expect.poll(async () => (await mine()).map(({ state }) => state)).toEqual(["delivered", "failed"]);
  pass(2 * 24 * HOUR);
  wake();
  await expect.poll(mine).toEqual([]);
});

test("an event of a thread waits for the previous one, even if no run ends with it", async () => {
  const { openMine, pass } = deployment();
  const { emit, wake, inbox } = await openMine({ on: ["schedule.paused"], ordered: true }, 500, 500);
  const paused = (thread_id: string, at: number) =>
    emit(ADA, { type: "schedule.paused", thread_id, data: { at } }, `${thread_id} ${at}`);
  for (const at of [1, 2, 3]) await paused("t1", at);
  const told = () => {
    pass(1_000);
    wake();
    return inbox.received.map(({ message }) => message.data.at);
  };
  await expect.poll(told).toEqual([1, 1, 1, 2, 3]);
});

test("the end of a run is sent even if any single call to the store fails", async () => {
  const count = async (failing: number) => {
    const { openMine, calls } = deployment();
    const { beforeEnd, inbox, mine } = await openMine({});
    const before = calls.count;
    calls.failing = before + failing;
    const ring = await beforeEnd(ending("acme", 1));
    const prepared = calls.count - before;
    // A process that dies now loses nothing.
    expect(await mine()).toHaveLength(1);
    ring();
    if (failing < prepared) await expect.poll(() => inbox.received.length).toBe(1);
    return prepared;
  };
  const all = await count(1_000);
  expect(all).toBeGreaterThan(2);
  for (let failing = 0; failing < all; failing++) await count(failing);
});

test("an event is stored at the fifth attempt at the latest, or logged as lost", async () => {
  const { openMine, calls, lines } = deployment();
  const { near, inbox } = await openMine(NEAR);
  calls.failingWrites = 9;
  await near("lost");
  await near("stored");
  expect(lines).toMatchObject([{ text: "could not store an event for webhooks", type: "budget.near" }]);
  await expect.poll(() => inbox.received.length).toBe(1);
});

test("the end of a run is sent even if the run is deleted before its delivery is confirmed", async () => {
  const { openMine, status, pass } = deployment();
  const { beforeEnd, wake, inbox } = await openMine({});
  await beforeEnd(ending("acme", 1));
  status.set("acme1", "deleted");
  pass(HOUR);
  wake();
  await expect.poll(() => inbox.received.length).toBe(1);
});

test("a webhook stays enabled if it fails occasionally, more than a day apart", async () => {
  const { openMine, pass } = deployment();
  const { webhooks, mine, near } = await openMine(NEAR, 404, 404, 404);
  for (const id of ["first", "second", "third"]) {
    await near(id);
    await expect.poll(async () => (await mine())[0]?.state).toBe("failed");
    pass(25 * HOUR);
  }
  expect((await webhooks.get(ADA, "mine"))?.webhook.disabled).toBeUndefined();
});

test("an ordered delivery is retried for a day from its turn on", async () => {
  const { openMine, pass } = deployment();
  const { beforeEnd, wake, mine } = await openMine({ ordered: true }, 500, 500);
  for (const run of [1, 2]) await beforeEnd(ending("acme", run));
  pass(25 * HOUR);
  wake();
  const ended = async () =>
    (await mine()).map(({ run_id, state, attempts }) => `${run_id} ${state} ${attempts}`).sort();
  await expect.poll(ended).toEqual(["acme1 failed 1", "acme2 delivered 2"]);
});

test("a tenant's delivery behind one about a deleted user is sent, and the user's are not", async () => {
  const { open, stores } = deployment();
  const inbox = await webhookInbox("never");
  const { webhooks, records, emit, wake } = await open();
  const tenant = { tenant: "acme" };
  await webhooks.put(tenant, "all", { ...SPEC, url: inbox.url, on: ["schedule.paused"], ordered: true });
  const tell = (user: string, id: string) =>
    emit({ tenant: "acme", user }, { type: "schedule.paused", thread_id: "t", data: { id } }, id);
  await tell("ada", "first");
  await expect.poll(() => inbox.received.length).toBe(1);
  await tell("bob", "second");
  await tell("ada", "third");
  await tell("bob", "fourth");
  await records.deleteMentions(ADA);
  wake();
  inbox.answerAll();
  const told = () => inbox.received.map(({ message }) => message.data.id);
  await expect.poll(told).toEqual(["first", "second", "fourth"]);
  const left = async () =>
    (await stores.documents.list(deliveriesOf(tenant))).map(({ body }) => JSON.parse(body));
  await expect
    .poll(async () => (await left()).map(({ owner, state }) => `${owner?.user} ${state}`))
    .toEqual(["bob delivered", "bob delivered"]);
});

test("if all deliveries are waiting, one more is dropped without checking all of them each time", async () => {
  const { openMine, calls, lines, stores } = deployment();
  const { mine, near } = await openMine(NEAR, ...Array<"never">(100).fill("never"));
  await near("first");
  const [{ body = "" } = {}] = await mine();
  const filler = JSON.stringify({ id: "x", webhook: "mine", owner: ADA, body, at: 1, state: "pending" });
  for (let at = 0; at < 999; at++)
    await stores.documents.write(deliveriesOf(ADA), [{ key: `filler${at}`, seen: undefined, body: filler }], {
      version: `v${at}`,
    });
  await near("second");
  const before = calls.lists;
  for (const id of ["third", "fourth", "fifth"]) await near(id);
  expect(calls.lists).toBe(before);
  expect(lines.filter((line) => JSON.stringify(line).includes("was dropped"))).toHaveLength(4);
});
