// One tenant's megabytes on the way to and from Redis, and another tenant's commands.

import { afterAll, expect, onTestFinished, test } from "vitest";
import type { Collection } from "../../../src/agent/core/documents.ts";
import { userMessage } from "../../../src/agent/core/message.ts";
import type { AllStores } from "../../../src/engine/stores/all-stores.ts";
import { createRedisStores } from "../../../src/engine/stores/redis/index.ts";
import type { Owner } from "../../../src/protocol/ids.ts";
import { cuttingProxy } from "../../support/cutting-proxy.ts";
import { needing } from "../../support/needing.ts";
import { startRedis } from "../../support/redis.ts";
import { ADA, claimed, newRun, note, upTo } from "./fixture.ts";

const redis = await startRedis();
afterAll(() => redis?.close());

const GRACE: Owner = { tenant: "navy", user: "grace" };
const KIB = 1024;
const LONG = "x".repeat(1024 * KIB);
const NOTES: Collection = { kind: "notes", owner: ADA, of: { agent: "helper" } };

needing(redis, "redis-server").describe("megabytes of one tenant", () => {
  /** A thread of ADA's of five megabytes, a small one of GRACE's, and a way to Redis that holds back what is long. */
  async function held({ deadlineMs = 60_000 } = {}) {
    redis?.ask("FLUSHALL");
    const proxy = await cuttingProxy(redis?.port ?? 0);
    onTestFinished(() => proxy.close());
    const open = async (port: number, deadlineMs: number) => {
      const stores = await createRedisStores({
        ...{ url: `redis://127.0.0.1:${port}`, deadlineMs, leaseMs: 60_000 },
      });
      onTestFinished(() => stores.close());
      return stores;
    };
    const direct = await open(redis?.port ?? 0, 60_000);
    const messages = upTo(5).map(() => userMessage(LONG));
    await direct.threads.create(ADA, { id: "fat", metadata: {}, messages, state: { much: LONG } });
    await direct.threads.create(GRACE, { id: "small", metadata: {} });
    const writes = upTo(5).map((n) => ({ key: `note ${n}`, seen: undefined, body: LONG }));
    await direct.documents.write(NOTES, writes, { version: "v1" });
    const stores = await open(proxy.port, deadlineMs);
    proxy.holdAfter(512 * KIB);
    return { proxy, stores };
  }

  /** What every request and run does. */
  async function ordinary({ threads, runs, events, documents }: AllStores): Promise<void> {
    const notes = { ...NOTES, owner: GRACE };
    for (const n of upTo(20)) {
      await threads.get(GRACE, "small");
      expect(await threads.messages(GRACE, "small")).toEqual([]);
      expect(await threads.state(GRACE, "small")).toEqual({});
      expect((await documents.read(notes, ["note"])).found).toEqual([undefined]);
      expect(await documents.list(notes)).toEqual([]);
      expect((await threads.list(GRACE, { limit: 10 })).items).toHaveLength(n === 1 ? 1 : 2);
      if (n > 1) continue;
      const started = await runs.start(GRACE, newRun("t"), "reject");
      if (started.outcome !== "claimed") throw new Error("The thread was free.");
      await events.append(started.claim.lease, [note("said")]);
    }
  }

  test.each<[what: string, work: (stores: AllStores) => Promise<unknown>]>([
    ["messages that are read", ({ threads }) => threads.messages(ADA, "fat")],
    ["a state that is read", ({ threads }) => threads.state(ADA, "fat")],
    [
      "a message that is read",
      async ({ threads }) => {
        const [first] = await threads.messages(ADA, "fat", { limit: 1 });
        return threads.message(ADA, "fat", first?.id ?? "");
      },
    ],
    ["documents that are read", ({ documents }) => documents.read(NOTES, ["note 1", "note 2"])],
    ["documents that are listed", ({ documents }) => documents.list(NOTES)],
    [
      "a thread that is created",
      ({ threads }) => threads.create(ADA, { id: "new", metadata: {}, messages: [userMessage(LONG)] }),
    ],
    [
      "an event that is written",
      async (stores) => {
        const { lease } = await claimed(stores, "t");
        return stores.events.append(lease, [note(LONG)]);
      },
    ],
  ])("%s do not block another tenant's command", async (_, work) => {
    const { proxy, stores } = await held({ deadlineMs: 200_000 });
    let ended = 0;
    const all = Promise.all(
      upTo(6).map(() =>
        work(stores)
          .catch((error: unknown) => error)
          .finally(() => ended++),
      ),
    );
    await ordinary(stores);
    expect(ended).toBeLessThan(6);
    proxy.release();
    expect(await all).toHaveLength(6);
  });

  test("wait in turn with those of all the tenant's users, so another tenant's come soon", async () => {
    const { proxy, stores } = await held();
    const done: string[] = [];
    const create = async (owner: Owner) => {
      await stores.threads.create(owner, { id: "new", metadata: {}, messages: [userMessage(LONG)] });
      done.push(owner.tenant);
    };
    const users = upTo(12).map((n) => create({ tenant: ADA.tenant, user: `user ${n}` }));
    const grace = create(GRACE);
    proxy.release();
    await Promise.all([...users, grace]);
    expect(done.indexOf(GRACE.tenant)).toBeLessThan(6);
  });

  test("that arrive too late over a slow connection do not block equally large reads soon after", async () => {
    const { proxy, stores } = await held({ deadlineMs: 4000 });
    await stores.threads.create(GRACE, {
      id: "long",
      metadata: {},
      messages: [userMessage(LONG.slice(0, 256 * KIB))],
    });
    // Something always comes: the connection is in use, and slow.
    const dripping = setInterval(() => proxy.drip(), 20);
    onTestFinished(() => clearInterval(dripping));
    await expect(stores.threads.messages(ADA, "fat")).rejects.toMatchObject({ code: "unavailable" });
    expect(await stores.threads.messages(GRACE, "long")).toHaveLength(1);
  });

  test("arrive complete, however many readers there are", async () => {
    const { proxy, stores } = await held();
    proxy.release();
    const all = await Promise.all(upTo(12).map(() => stores.threads.messages(ADA, "fat")));
    for (const messages of all) expect(messages.map(({ content }) => content)).toEqual(Array(5).fill(LONG));
    expect(await stores.threads.state(ADA, "fat")).toEqual({ much: LONG });
    const bodies = (await stores.documents.list(NOTES)).map(({ body }) => body);
    expect(bodies).toEqual(Array(5).fill(LONG));
  });
});
