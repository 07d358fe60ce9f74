// What triggers, webhooks, temporary threads and the trail promise on every store: several processes share the work and do it once, it
// outlives them, and it goes with its user.

import { describe, expect, onTestFinished, test } from "vitest";
import type { NewEntry } from "../../src/engine/audit/entry.ts";
import { createAudit } from "../../src/engine/audit/index.ts";
import { QuotaConfig } from "../../src/engine/quotas/config.ts";
import { createQuotas } from "../../src/engine/quotas/index.ts";
import type { AllStores } from "../../src/engine/stores/all-stores.ts";
import { createTemporaryThreads } from "../../src/engine/temporary-threads/index.ts";
import { createTriggers, type IncomingDelivery } from "../../src/engine/triggers/index.ts";
import { TriggerSpec } from "../../src/engine/triggers/trigger.ts";
import { deliveriesOf } from "../../src/engine/webhooks/delivery-store.ts";
import { createWebhooks } from "../../src/engine/webhooks/index.ts";
import { hostList } from "../../src/lib/hosts.ts";
import { SILENT } from "../../src/lib/logger.ts";
import type { Owner } from "../../src/protocol/ids.ts";
import { managed } from "../engine/runs/managed.ts";
import { ADA, BOB, inWorld, type Open } from "../engine/stores/fixture.ts";
import { webhookInbox } from "../support/webhook-inbox.ts";

const PROCESSES = [1, 2, 3];
const MINUTE = 60_000;
const SECRET = "a secret of 16 characters or more";
const logger = SILENT;

/** For stores on which a process can open what another one has left. */
const reopened = async (open: Open, body: (stores: AllStores) => Promise<void>) => {
  const stores = await open.again?.();
  if (!stores) return;
  await body(stores);
  await stores.close();
};

async function triggersOn(stores: AllStores) {
  const { runs } = managed(stores);
  await runs.open();
  const triggers = createTriggers({
    ...{ documents: stores.documents, runs, logger, quotas: { request: async () => {} } },
    ...{ publicUrl: undefined, endOfKey: async () => undefined },
    limits: { triggers: 2, requestsPerMinute: 1_000 },
  });
  onTestFinished(() => triggers.close());
  return triggers;
}

const putTrigger = async ({ store }: Awaited<ReturnType<typeof triggersOn>>, owner: Owner, id: string) => {
  const spec = TriggerSpec.parse({ agent: "helper", verify: { scheme: "token" }, input: "{{body.text}}" });
  const at = new Date(0).toISOString();
  const made = () => ({ ...spec, created_at: at, updated_at: at, secret: SECRET });
  return (await store.put(owner, id, made, () => {})).trigger.address;
};

const delivery = (id: string): IncomingDelivery => ({
  headers: { authorization: SECRET, "idempotency-key": id },
  raw: Buffer.from(id),
  request_id: id,
  parse: async () => ({ text: id }),
});

function triggersContract(open: Open): void {
  test("triggers start one run for a delivery that reaches three processes at once, and none for a deleted user", () =>
    inWorld(open, async ({ stores }) => {
      const processes = await Promise.all(PROCESSES.map(() => triggersOn(stores)));
      const [first] = processes as [(typeof processes)[number]];
      const [ofAda, ofBob] = [await putTrigger(first, ADA, "mine"), await putTrigger(first, BOB, "mine")];
      const send = async (triggers: typeof first, address: string, id: string) =>
        triggers.receive(await triggers.open(address), delivery(id));
      for (const id of ["one", "two"]) {
        const started = await Promise.all(processes.map((each) => send(each, ofAda, id)));
        expect(new Set(started.map((each) => JSON.stringify(each))).size, id).toBe(1);
      }
      expect((await stores.threads.list(ADA, { limit: 10 })).items).toHaveLength(2);
      expect(await first.records.deleteAll(BOB)).toBe(1);
      await expect(send(first, ofBob, "three")).rejects.toMatchObject({ code: "not_found" });
      expect((await stores.threads.list(BOB, { limit: 10 })).items).toEqual([]);
      expect(await send(first, ofAda, "one")).toMatchObject({ run_id: expect.any(String) });
      await Promise.all(processes.map((each) => each.close()));
      for (const kind of ["triggers", "trigger_logs", "trigger_runs"])
        expect(await stores.documents.list({ kind, ...BOB }), kind).toEqual([]);
    }));

  test("a user's triggers are limited, even with simultaneous processes, and have a version", () =>
    inWorld(open, async ({ stores }) => {
      const processes = await Promise.all(PROCESSES.map(() => triggersOn(stores)));
      const made = await Promise.allSettled(processes.map((each, n) => putTrigger(each, ADA, `t${n}`)));
      expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
      expect((await processes[0]?.records.list(ADA, { limit: 10 }))?.items).toHaveLength(2);
      expect(await stores.documents.list({ kind: "trigger_addresses" })).toHaveLength(2);
    }));
}

async function webhooksOn({ documents, runs, threads, isDurable }: AllStores) {
  const webhooks = createWebhooks({
    ...{ documents, runs, threads, isDurable, logger, maxWebhooks: 10, allow: hostList("127.0.0.1") },
    onOutcome() {},
  });
  onTestFinished(() => webhooks.close());
  return webhooks;
}

function webhooksContract(open: Open): void {
  const told = (n: number) => ({ type: "run.ended" as const, thread_id: "t", run_id: `r${n}`, data: {} });

  test("webhooks receive each event of a thread once and in order across three processes, but none of a deleted user", () =>
    inWorld(open, async ({ stores }) => {
      const inbox = await webhookInbox();
      const processes = await Promise.all(PROCESSES.map(() => webhooksOn(stores)));
      const [first] = processes as [(typeof processes)[number]];
      const spec = { on: ["run.ended" as const], ordered: true, paused: false };
      await first.webhooks.put(ADA, "mine", { ...spec, url: inbox.url });
      await first.webhooks.put(BOB, "mine", { ...spec, url: (await webhookInbox()).url });
      const numbers = Array.from({ length: 12 }, (_, n) => n);
      await first.emit(BOB, told(100), "e100");
      for (const n of numbers) await first.emit(ADA, told(n), `e${n}`);
      // The same event again.
      for (const n of numbers) await first.emit(ADA, told(n), `e${n}`);
      expect(await first.records.deleteAll(BOB)).toBe(1);
      await Promise.all(processes.map((each) => each.open()));
      await expect.poll(() => inbox.received.length, { timeout: 60_000 }).toBe(numbers.length);
      await Promise.all(processes.map((each) => each.close()));
      expect(inbox.received.map(({ message }) => message.data.run_id)).toEqual(numbers.map((n) => `r${n}`));
      expect(await stores.documents.list(deliveriesOf(BOB))).toEqual([]);
    }));
}

const KEEP_MS = 1_000;

function temporaryThreadsOn(stores: AllStores) {
  const quotas = createQuotas(stores.quotas, QuotaConfig.parse({}), { threadMs: MINUTE });
  const threads = createTemporaryThreads({ stores, quotas, logger, keepMs: KEEP_MS, most: 20 });
  onTestFinished(() => threads.close());
  return threads;
}

function temporaryThreadsContract(open: Open): void {
  test("temporary threads are deleted once across three processes, and their keys are remembered for an hour", () =>
    inWorld(open, async ({ stores, advance }) => {
      const processes = PROCESSES.map(() => temporaryThreadsOn(stores));
      const [first] = processes as [(typeof processes)[number]];
      const places = Array.from({ length: 20 }, (_, n) => ({ id: `th${n}`, isKeyed: n % 2 === 0 }));
      for (const { id, isKeyed } of places) {
        await first.announce(ADA, id, isKeyed);
        await stores.threads.create(ADA, { id, metadata: {} });
      }
      await expect(first.announce(ADA, "one-more", false)).rejects.toMatchObject({ code: "limit_exceeded" });
      await stores.threads.create(ADA, { id: "own", metadata: {} });
      advance(MINUTE);
      for (const each of processes) each.open();
      const left = async () => (await stores.threads.list(ADA, { limit: 100 })).items.map(({ id }) => id);
      await expect.poll(left, { timeout: 60_000 }).toEqual(["own"]);
      const remembered = async () =>
        (await stores.documents.list({ kind: "temporary_threads", ...ADA })).map(({ key }) => key).sort();
      const keyed = places.filter(({ isKeyed }) => isKeyed).map(({ id }) => id);
      await expect.poll(remembered, { timeout: 60_000 }).toEqual(keyed.sort());
      await expect(first.announce(ADA, "th0", true)).rejects.toMatchObject({ code: "events_expired" });
      for (const { id } of places) await first.announce(ADA, `new-${id}`, false);
      await expect(first.announce(ADA, "one-more", false)).rejects.toMatchObject({ code: "limit_exceeded" });
      advance(61 * MINUTE);
      await expect.poll(remembered, { timeout: 60_000 }).toEqual([]);
      await Promise.all(processes.map((each) => each.close()));
    }));
}

const auditOn = ({ documents }: AllStores, count = 10_000) => {
  const audit = createAudit({
    ...{ documents, logger, isLogged: false, kept: { ms: Number.POSITIVE_INFINITY, count } },
    onWritten: async () => {},
    onCounted() {},
  });
  onTestFinished(() => audit.close());
  return audit;
};

const entry = (tenant: string, id: string, at: number): NewEntry => ({
  ...{ tenant, at, action: "thread.create", outcome: "ok" },
  ...{ actor: { type: "user", id: "ada", user: "ada" }, target: { type: "thread", id } },
});

function auditContract(open: Open): void {
  const trailOf = async (stores: AllStores, tenant: string) => {
    const ids: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await auditOn(stores).list(tenant, { limit: 7, cursor });
      ids.push(...page.items.map(({ target }) => target?.id ?? ""));
      if (page.next_cursor === undefined) return ids;
      cursor = page.next_cursor;
    }
  };

  test("an audit trail contains each entry of three processes once, newest first and after a restart, and no other tenant's", () =>
    inWorld(open, async ({ stores }) => {
      const processes = PROCESSES.map(() => auditOn(stores));
      const ids = Array.from({ length: 30 }, (_, n) => `t${n}`);
      for (const [n, id] of ids.entries()) processes[n % 3]?.record(entry(ADA.tenant, id, n * 1_000));
      processes[0]?.record(entry("other", "mine", 0));
      await Promise.all(processes.map((each) => each.close()));
      expect(await trailOf(stores, ADA.tenant)).toEqual(ids.toReversed());
      expect(await trailOf(stores, "other")).toEqual(["mine"]);
      await reopened(open, async (again) =>
        expect(await trailOf(again, ADA.tenant)).toEqual(ids.toReversed()),
      );
    }));

  test("a full audit trail loses its oldest entries", () =>
    inWorld(open, async ({ stores, advance }) => {
      const audit = auditOn(stores, 20);
      for (let n = 0; n < 40; n++) {
        const one = auditOn(stores, 20);
        one.record(entry(ADA.tenant, `t${n}`, n * 1_000));
        await one.close();
        advance(10);
      }
      audit.record(entry(ADA.tenant, "last", 50_000));
      audit.record(entry(ADA.tenant, "very last", 51_000));
      await audit.close();
      const kept = await trailOf(stores, ADA.tenant);
      expect(kept.slice(0, 3)).toEqual(["very last", "last", "t39"]);
      expect(kept.length).toBeLessThanOrEqual(20);
    }));
}

/** The nouns that begin runs or delete threads. */
export function nounsWithRunsContract(open: Open): void {
  describe("nouns", () => {
    triggersContract(open);
    temporaryThreadsContract(open);
  });
}

/** The nouns that write documents only. */
export function nounsOfDocumentsContract(open: Open): void {
  describe("nouns", () => {
    webhooksContract(open);
    auditContract(open);
  });
}
