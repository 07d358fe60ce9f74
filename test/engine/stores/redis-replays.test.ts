// Many viewers of long logs on one Redis.

import { setImmediate as turn } from "node:timers/promises";
import { afterAll, beforeEach, expect, onTestFinished, test } from "vitest";
import type { Cursor, RunKey } from "../../../src/agent/core/stores.ts";
import { createRedisStores } from "../../../src/engine/stores/redis/index.ts";
import { createReplays, type EventPage } from "../../../src/engine/stores/shared/event-pages.ts";
import { needing } from "../../support/needing.ts";
import { serveWith } from "../../support/process.ts";
import { startRedis } from "../../support/redis.ts";
import { ADA, claimed, done, keyOf, note, seqsOf, upTo } from "./fixture.ts";

const redis = await startRedis();
afterAll(() => redis?.close());

const NEVER = new AbortController().signal;
const KIB = 1024;
const run: RunKey = { owner: ADA, thread_id: "t", run_id: "r" };

/** What Redis has sent so far, in bytes. */
const sent = () => Number(/total_net_output_bytes:(\d+)/.exec(redis?.ask("INFO", "stats") ?? "")?.[1]);

needing(redis, "redis-server").describe("viewers of a long log", () => {
  beforeEach(() => void redis?.ask("FLUSHALL"));

  async function longLog(sizes: readonly number[]) {
    const stores = await createRedisStores({ url: redis?.url ?? "" });
    onTestFinished(() => stores.close());
    const claim = await claimed(stores, "t");
    for (const size of sizes) await stores.events.append(claim.lease, [note("x".repeat(size))]);
    await stores.events.append(claim.lease, [done()]);
    return { stores, key: keyOf(claim) };
  }

  test("that read nothing cost one shared page, for a log of any length", async () => {
    const { stores, key } = await longLog(upTo(80).map(() => 100 * KIB));
    const before = sent();
    const viewers = upTo(200).map(() => stores.events.read(key, 0, NEVER));
    const firsts = await Promise.all(viewers.map((viewer) => viewer.next()));
    expect(sent() - before).toBeLessThan(400 * KIB);
    for (const { value } of firsts) expect(value).toEqual(firsts[0]?.value);
  });

  test("that continue one after another get all of it, in order", async () => {
    const { stores, key } = await longLog(upTo(40).map(() => 50 * KIB));
    const viewers = upTo(50).map(async (n) => {
      const seqs: number[] = [];
      for await (const batch of stores.events.read(key, n % 7, NEVER)) {
        seqs.push(...seqsOf(batch));
        for (let pause = 0; pause < n % 3; pause++) await turn();
      }
      return seqs;
    });
    for (const [index, seqs] of (await Promise.all(viewers)).entries())
      expect(seqs).toEqual(upTo(41, ((index + 1) % 7) + 1));
  });

  test("get pages of limited size, even if events grow within one", async () => {
    const { stores, key } = await longLog([...upTo(10).map(() => 10), ...upTo(20).map(() => 1024 * KIB)]);
    const before = sent();
    const { value } = await stores.events.read(key, 0, NEVER).next();
    expect(sent() - before).toBeLessThan(1300 * KIB);
    expect(seqsOf(value ?? [])).toEqual(upTo(11));
  });

  test("request four pages at once, each for all who need it, and let a run read before them", async () => {
    const asked: Cursor[] = [];
    const open: (() => void)[] = [];
    const connection = { isInRun: false, ms: 60_000 };
    const read = (_run: RunKey, cursor: Cursor) => {
      asked.push(cursor);
      return new Promise<EventPage | undefined>((resolve) => open.push(() => resolve(undefined)));
    };
    const replays = createReplays({ read }, connection);
    const reading = upTo(200).map((n) => replays.read(run, { seq: n % 20 }));
    await turn();
    expect(asked.map(({ seq }) => seq)).toEqual(upTo(4));
    connection.isInRun = true;
    const ofRun = replays.read(run, { seq: 1 });
    connection.isInRun = false;
    open.pop()?.();
    await ofRun;
    while (open.length > 0) {
      expect(open.length).toBeLessThanOrEqual(4);
      open.shift()?.();
      await turn();
    }
    await Promise.all(reading);
    expect(asked).toHaveLength(21);
  });

  test("that wait for a page get `unavailable` within their own time, not one after another", async () => {
    const open: (() => void)[] = [];
    const read = () => new Promise<undefined>((resolve) => open.push(() => resolve(undefined)));
    const replays = createReplays({ read }, { isInRun: false, ms: 1 });
    const reading = upTo(200).map((seq) => replays.read(run, { seq }));
    const waiting = await Promise.allSettled(reading.slice(4));
    for (const each of waiting)
      expect(each).toMatchObject({ status: "rejected", reason: { code: "unavailable" } });
    expect(open).toHaveLength(4);
    for (const answer of open) answer();
    expect(await Promise.all(reading.slice(0, 4))).toEqual(Array(4).fill(undefined));
  });

  test("do not delay the end of a run", async () => {
    const long = `${"x".repeat(200)} `.repeat(3_000);
    const script = JSON.stringify([{ say: long }, { say: "a b c d e ".repeat(20), delay_ms: 20 }]);
    const { url } = await serveWith({ store: "redis", redis: { url: redis?.url } }, { script });
    const start = async (body: object) => {
      const headers = { "content-type": "application/json", accept: "application/json" };
      const reply = await fetch(`${url}/threads/t/runs`, {
        method: "POST",
        headers,
        body: JSON.stringify(body),
      });
      return `${url}/threads/t/runs/${((await reply.json()) as { id: string }).id}`;
    };
    const whole = await start({ input: "go" });
    const running = await start({ input: "continue", background: true });
    const answers = upTo(200).map(async () => measured(await fetch(`${whole}/events`)));
    const [first, ...rest] = await Promise.all(answers);
    expect(first?.end).toMatch(/event: done\n.*\n\n$/);
    for (const each of rest) expect(each).toEqual(first);
    await measured(await fetch(`${running}/events`));
    expect(await (await fetch(running)).json()).toMatchObject({ status: "success", attempt: 1 });
  });
});

/** How long an answer is, and how it ends. */
async function measured({ body }: Response): Promise<{ length: number; end: string }> {
  let length = 0;
  let end = Buffer.alloc(0);
  for await (const chunk of body ?? []) {
    length += chunk.length;
    end = Buffer.concat([end, chunk]).subarray(-500);
  }
  return { length, end: String(end) };
}
