// Connections to a store of several processes that break, before or after the answer.

import { afterAll, expect, test } from "vitest";
import type { AllStores } from "../../../src/engine/stores/all-stores.ts";
import type { StoreOptions } from "../../../src/engine/stores/options.ts";
import { createPostgresStores } from "../../../src/engine/stores/postgres/index.ts";
import { createRedisStores } from "../../../src/engine/stores/redis/index.ts";
import { createRandom } from "../../chaos/random.ts";
import { anyCommandsContract } from "../../contracts/any-commands.ts";
import { deferredCallsContract } from "../../contracts/deferred-calls.ts";
import { documentsContract } from "../../contracts/documents.ts";
import { documentListsContract } from "../../contracts/documents-lists.ts";
import { documentStepsContract } from "../../contracts/documents-steps.ts";
import { reservationsContract } from "../../contracts/quotas-reservations.ts";
import { storedContract } from "../../contracts/quotas-stored.ts";
import { usedContract } from "../../contracts/quotas-used.ts";
import { runsContract } from "../../contracts/runs.ts";
import { threadsContract } from "../../contracts/threads.ts";
import { type CuttingProxy, cuttingProxy } from "../../support/cutting-proxy.ts";
import { needing } from "../../support/needing.ts";
import { startPostgres } from "../../support/postgres.ts";
import { startRedis } from "../../support/redis.ts";
import { isNightly, seedOr } from "../../support/seed.ts";
import { checkedAfter, type StorePlace } from "../../support/store-check.ts";
import {
  ADA,
  claimed,
  delta,
  done,
  keyOf,
  message,
  note,
  type Open,
  readAll,
  seqsOf,
  upTo,
} from "./fixture.ts";
import { HOUR, type OpenQuotas } from "./fixture-quotas.ts";
import { tablesOf } from "./postgres-tables.ts";

// Connections are cut between any commands. The suites of the kernel take minutes here, so they run at night, each time with other cuts.

/** With CUTS_SEED, other connections are cut. */
const seed = Number(process.env.CUTS_SEED ?? seedOr(1));
const random = createRandom(String(seed));

/** A hundred calls at once, of which each ninth is cut, take their time on a busy machine. */
const deadlineMs = 60_000;

interface Cuttable {
  readonly proxy: CuttingProxy;
  /** Opens empty stores behind the proxy, whose connections are whole. */
  empty(options?: StoreOptions): Promise<AllStores>;
  /** Opens the same ones again, by another way. */
  beside(): Promise<AllStores>;
  /** The place of the stores that were opened last. */
  place(): StorePlace;
  /** What is counted of what passes, and how much of it is never lost at once. */
  readonly calls: RegExp;
  readonly whole: number;
  /** The call after which a change has happened, as the how manieth of a deletion. */
  readonly commit: readonly [number, RegExp];
  close(): Promise<void>;
}

async function cuttableRedis(): Promise<Cuttable | undefined> {
  const redis = await startRedis("--databases", "1000");
  if (!redis) return undefined;
  const proxy = await cuttingProxy(redis.port);
  let database = 0;
  return {
    proxy,
    empty: (options) => {
      database++;
      return createRedisStores({
        url: `redis://127.0.0.1:${proxy.port}/${database}`,
        deadlineMs,
        ...options,
      });
    },
    beside: () => createRedisStores({ url: `${redis.url}/${database}` }),
    place: () => ({ redis: `${redis.url}/${database}` }),
    calls: /evalsha/,
    whole: 3,
    commit: [2, /evalsha/], // The thread is loaded, and then deleted.
    close: () => proxy.close().then(redis.close),
  };
}

async function cuttablePostgres(): Promise<Cuttable | undefined> {
  const postgres = await startPostgres();
  const tables = await tablesOf(postgres);
  if (!postgres || !tables) return undefined;
  const proxy = await cuttingProxy(postgres.port);
  // Its tables are made by the first.
  await (await createPostgresStores({ url: postgres.url })).close();
  const close = async () => {
    await tables.close();
    await proxy.close();
    await postgres.close();
  };
  return {
    proxy,
    empty: async (options) => {
      const url = new URL(await tables.empty());
      url.port = String(proxy.port);
      return createPostgresStores({ url: url.href, pool: 4, deadlineMs, ...options });
    },
    beside: () => createPostgresStores({ url: postgres.url, pool: 4 }),
    place: () => ({ postgres: postgres.url }),
    calls: /skein_|COMMIT/,
    whole: 7, // A transaction is several.
    commit: [1, /COMMIT/],
    close,
  };
}

for (const [open, program] of [
  [cuttableRedis, "redis-server"],
  [cuttablePostgres, "postgres"],
] as const) {
  const there = await open();
  afterAll(() => there?.close());

  needing(there, program).describe(`connections to ${program} that break (CUTS_SEED=${seed})`, () => {
    if (!there) return;
    const { proxy, calls, whole } = there;
    const cutting: Open = async (options) => {
      const opened = await there.empty(options);
      proxy.cutEvery(random.int(whole + 1, whole + 5), calls);
      const close = () => {
        proxy.cutEvery(0);
        return opened.close();
      };
      return { ...opened, close };
    };
    const cuttingChecked = checkedAfter(cutting, there.place);
    const cuttingQuotas: OpenQuotas = (now) => cutting({ now });

    test("cause no gap or repetition for viewers, however many there are", async () => {
      const stores = await there.empty();
      const claim = await claimed(stores, "t");
      const reading = upTo(10).map(() => readAll(stores, keyOf(claim)));
      for (const n of upTo(200)) {
        if (n % 20 === 0) proxy.cutAll();
        const written = stores.events.append(claim.lease, [n % 5 ? delta(`${n}`) : note(`${n}`)]);
        if (n % 10 === 0) await written;
      }
      await stores.events.append(claim.lease, [done()]);
      for (const entries of await Promise.all(reading)) expect(seqsOf(entries)).toEqual(upTo(201));
      await stores.close();
    });

    test("do not allow a recreated thread to be deleted by a repeated deletion", async () => {
      const [cut, other] = [await there.empty(), await there.beside()];
      for (const id of ["warm", "t"]) await other.threads.create(ADA, { id, metadata: {} });
      await cut.threads.delete(ADA, "warm");
      const before = proxy.cuts;
      proxy.cutEvery(...there.commit);
      const deleting = cut.threads.delete(ADA, "t");
      while (proxy.cuts === before) await new Promise(setImmediate);
      proxy.cutEvery(0);
      // The deletion may happen after the cut, or only when it is repeated.
      while (await other.threads.get(ADA, "t"));
      await other.threads.create(ADA, { id: "t", metadata: {} });
      expect(await deleting).toBe(true);
      expect(await other.threads.get(ADA, "t")).toMatchObject({ id: "t" });
      await Promise.all([cut.close(), other.close()]);
    });

    test("while a response is on its way do not duplicate the text", async () => {
      const opened = await cutting();
      const { lease } = await claimed(opened, "t");
      // A new connection to Redis runs two scripts: of every three, the repeated one would be cut each time.
      proxy.cutEvery(whole + 1, calls);
      for (const n of upTo(60)) await opened.events.append(lease, [n % 3 ? note(`${n}`) : message(`${n}`)]);
      await opened.events.append(lease, [done()]);
      proxy.cutEvery(0);
      expect(seqsOf(await readAll(opened, lease))).toEqual(upTo(61));
      expect(await opened.threads.messages(ADA, "t")).toHaveLength(20);
      await opened.close();
    });

    test("while a response is on its way do not hide abandoned runs from processes that look for them", async () => {
      let time = 0;
      const opened = await cutting({ now: () => time, maxAttempts: 1000 });
      const { run } = await claimed(opened, "t");
      proxy.cutEvery(whole + 1, calls);
      for (const attempt of upTo(20, 2)) {
        time += 10_001;
        expect(await opened.runs.claimAbandoned(100)).toMatchObject([{ run: { id: run.id, attempt } }]);
      }
      await opened.close();
    });

    // With the answer on its way they make nothing happen twice.
    anyCommandsContract(checkedAfter(cutting, there.place, "call_without_message"), 12, seed);
    documentStepsContract(cuttingChecked, 3);
    reservationsContract(cuttingQuotas);
    storedContract(cuttingQuotas, isNightly ? 25 : 8);
    if (isNightly) {
      threadsContract(cutting);
      runsContract(cutting);
      documentsContract(cuttingChecked);
      documentListsContract(cuttingChecked);
      deferredCallsContract(cutting);
      usedContract(cuttingQuotas);
    }

    test("leave no count of a thread that was not created, or of a run that was refused", async () => {
      const { quotas, close } = await cuttingQuotas(() => 0);
      for (const n of upTo(20)) {
        const held = { thing: "threads" as const, id: `${n}`, ms: HOUR, makingMs: 1 };
        expect(await quotas.hold(ADA, held, { tenant: 1, user: 1 })).toBe("new");
        await quotas.release(ADA, "threads", `${n}`, 1);
      }
      expect((await quotas.held(ADA)).user.threads).toBe(0);
      await close();
    });

    test("did happen", () => expect(proxy.cuts).toBeGreaterThan(50));
  });
}
