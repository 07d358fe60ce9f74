import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import type { RunRecord, Thread } from "../../../src/agent/core/records.ts";
import { notificationStore } from "../../../src/engine/runs/notification-store.ts";
import type { InterruptedRun } from "../../../src/engine/runs/services.ts";
import { InterruptWebhook } from "../../../src/engine/runs/webhook.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { SILENT } from "../../../src/lib/logger.ts";
import type { Interrupt } from "../../../src/protocol/interrupt.ts";

const interrupted = (tenant: string, run: number): InterruptedRun => ({
  owner: { tenant, user: "ada" },
  run: { id: `${tenant}${run}`, thread_id: "t", agent: "helper" } as RunRecord,
  interrupts: [] as Interrupt[],
});

/** A webhook whose receiver answers nothing before it is opened, and the tenants in the order of delivery. */
async function told() {
  const opened = Promise.withResolvers<void>();
  const delivered: string[] = [];
  const server = createServer(async (request, response) => {
    const { data } = JSON.parse(await text(request)) as { data: { tenant: string } };
    await opened.promise;
    delivered.push(data.tenant);
    response.writeHead(204).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const dropped: object[] = [];
  const logger = { info() {}, warn() {}, error: (details: object) => void dropped.push(details) };
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const secret = `whsec_${randomBytes(32).toString("base64")}`;
  const webhook = new InterruptWebhook({ url, secret }, logger);
  onTestFinished(async () => {
    await webhook.close();
    server.closeAllConnections();
    server.close();
  });
  const flood = (tenant: string, count: number) => {
    for (let run = 0; run < count; run++) webhook.notify(interrupted(tenant, run));
  };
  return { flood, delivered, dropped, open: opened.resolve };
}

test("notifications of tenants are sent in turn, however many one of them has", async () => {
  const { flood, delivered, open } = await told();
  flood("flood", 80);
  flood("other", 2);
  open();
  await expect.poll(() => delivered.filter((tenant) => tenant === "other").length).toBe(2);
  // Four are sent at once; after them it is one of each.
  expect(delivered.lastIndexOf("other")).toBeLessThan(20);
});

test("when too many wait, those of the tenant that has most are dropped, each with a line of the log", async () => {
  const { flood, delivered, dropped, open } = await told();
  flood("flood", 1020);
  flood("other", 5);
  const lines = dropped.filter((line) => "why" in line && line.why === "too many wait to be sent");
  expect(lines).toHaveLength(1025 - 1004);
  expect(lines.every((line) => "tenant" in line && line.tenant === "flood")).toBe(true);
  open();
  await expect.poll(() => delivered.filter((tenant) => tenant === "other").length).toBe(5);
});

test("a notification whose process died is sent by another one, unless its run no longer waits", async () => {
  let time = Date.now();
  const stores = createMemoryStores({ now: () => time });
  onTestFinished(() => stores.close());
  const status = new Map([
    ["acme1", "interrupted"],
    ["acme2", "success"],
  ]);
  const runs = {
    get: async (_: unknown, __: string, id: string) => ({ status: status.get(id) }) as RunRecord,
  };
  const threads = { get: async () => ({ status: "interrupted" }) as Thread };
  const kept = notificationStore(stores.documents, { runs, threads });
  const options = { url: "http://127.0.0.1:1/", secret: `whsec_${randomBytes(32).toString("base64")}`, kept };
  const dying = new InterruptWebhook(options, SILENT);
  await dying.prepare(interrupted("acme", 1));
  await dying.prepare(interrupted("acme", 2));
  expect(await kept.take(10, 60_000)).toEqual([]);
  for (const run_id of status.keys())
    await kept.hold(
      { id: "", owner: { tenant: "acme", user: "ada" }, run_id, thread_id: "t", body: "", at: 0 },
      0,
    );
  const taken = await kept.take(10, 60_000);
  expect(taken).toMatchObject([{ id: "msg_acme1", owner: { tenant: "acme", user: "ada" }, thread_id: "t" }]);
  expect(await kept.take(10, 60_000)).toEqual([]);
  expect(await stores.documents.list({ kind: "notifications", tenant: "acme" })).toHaveLength(1);
  // Also when the clock was set back since.
  time -= 3_600_000;
  expect(await kept.take(10, 60_000)).toEqual(taken);
  expect(await kept.take(10, 60_000)).toEqual([]);
});

test("notifications of one tenant, however many wait, do not keep those of another from being sent", async () => {
  let time = Date.now();
  const stores = createMemoryStores({ now: () => time });
  onTestFinished(() => stores.close());
  const runs = { get: async () => ({ status: "interrupted" }) as RunRecord };
  const threads = { get: async () => ({ status: "interrupted" }) as Thread };
  const kept = notificationStore(stores.documents, { runs, threads });
  const keep = (tenant: string, run_id: string) =>
    kept.keep({ id: run_id, owner: { tenant, user: "ada" }, run_id, thread_id: "t", body: "", at: 0 }, 0);
  for (let each = 0; each < 200; each++) await keep("crowded", `run_${each}`);
  time += 1;
  await keep("quiet", "run_quiet");
  const sent: string[] = [];
  for (let turn = 0; turn < 2; turn++) {
    time += 1;
    sent.push(...(await kept.take(1, 60_000)).map(({ owner }) => owner.tenant));
  }
  expect(sent.toSorted()).toEqual(["crowded", "quiet"]);
});
