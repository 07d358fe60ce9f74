// What every EventLog promises to its readers, however many, slow, late or impatient they are.

import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Cursor, LogEntry } from "../../src/agent/core/stores.ts";
import {
  ADA,
  claimed,
  delta,
  done,
  inWorld,
  keyOf,
  newRun,
  note,
  type Open,
  readAll,
  readSome,
  seqsOf,
  upTo,
} from "../engine/stores/fixture.ts";

export function eventReadersContract(open: Open): void {
  describe("events", () => {
    test("can be read once the append has resolved", () =>
      inWorld(open, async ({ stores }) => {
        const claim = await claimed(stores, "t");
        for (let n = 1; n <= 20; n++) {
          await stores.events.append(claim.lease, [delta(`${n}`)]);
          expect(await stores.events.bounds(keyOf(claim))).toEqual({ first: 1, last: n });
          expect(seqsOf(await readSome(stores, keyOf(claim), 1, n - 1))).toEqual([n]);
        }
      }));

    test("reach five readers who join at different times, without losses or repetitions", () =>
      inWorld(open, async ({ stores }) => {
        const claim = await claimed(stores, "t");
        const reading: Promise<LogEntry[]>[] = [];
        for (let n = 0; n < 1000; n++) {
          if (n % 200 === 0) reading.push(readAll(stores, keyOf(claim)));
          const append = stores.events.append(claim.lease, [n % 97 === 0 ? note(`${n}`) : delta(`${n}`)]);
          if (n % 10 === 0) await append;
          if (n % 25 === 0) await turn();
        }
        await stores.events.append(claim.lease, [done()]);
        for (const entries of await Promise.all(reading)) expect(seqsOf(entries)).toEqual(upTo(1001));
      }));

    test("reach a waiting reader while the run continues", () =>
      inWorld(open, async ({ stores }) => {
        const claim = await claimed(stores, "t");
        const reader = stores.events.read(keyOf(claim), 0, new AbortController().signal);
        for (let n = 1; n <= 40; n++) {
          const next = reader.next();
          await turn();
          await stores.events.append(claim.lease, [n % 8 === 0 ? note("x") : delta("x")]);
          expect(seqsOf((await next).value ?? [])).toEqual([n]);
        }
        await stores.events.append(claim.lease, [done()]);
      }));

    test("arrive live, and can be read from any cursor", () =>
      inWorld(open, async ({ stores }) => {
        const claim = await claimed(stores, "t");
        await stores.events.append(
          claim.lease,
          upTo(100).map((n) => delta(`${n}`)),
        );
        const late = readAll(stores, keyOf(claim), 77);
        const live = readAll(stores, keyOf(claim), 100);
        await stores.events.append(claim.lease, [note("x"), done()]);
        expect(seqsOf(await late)).toEqual(upTo(102, 78));
        expect(seqsOf(await live)).toEqual([101, 102]);
        expect(await readAll(stores, keyOf(claim), 102)).toEqual([]);
      }));

    test("are compared with a returning reader's position after another attempt", () =>
      inWorld(open, async ({ stores }) => {
        const first = await claimed(stores, "t");
        const key = keyOf(first);
        await stores.events.append(
          first.lease,
          upTo(5).map((n) => note(`${n}`)),
        );
        await stores.runs.release(first.lease);
        const second = await stores.runs.claimNext(ADA, "t");
        if (!second) throw new Error("It was not claimed.");
        const { epoch } = second.lease;
        await stores.events.append(second.lease, [note("6"), note("7"), delta("8"), delta("9")]);
        const known = async (cursor: Cursor) => {
          expect(await stores.events.seen(key, cursor)).toBe(cursor.seq);
          const { value } = await stores.events.read(key, cursor, new AbortController().signal).next();
          expect(seqsOf(value ?? [])).toEqual(upTo(9, cursor.seq + 1));
        };
        const lost = async (cursor: Cursor, seen: number) => {
          expect(await stores.events.seen(key, cursor)).toBe(seen);
          const reader = stores.events.read(key, cursor, new AbortController().signal);
          await expect(reader.next()).rejects.toMatchObject({ code: "events_expired" });
        };
        for (const seq of [0, 3, 5]) await known({ seq, epoch: first.lease.epoch });
        for (const seq of [6, 8]) await known({ seq, epoch });
        for (const seq of [2, 8]) await known({ seq });
        for (const seq of [6, 9, 20]) await lost({ seq, epoch: first.lease.epoch }, 5);
        await lost({ seq: 10, epoch }, 9);
        await lost({ seq: 4, epoch }, 0);
        await lost({ seq: 9, epoch: epoch + 1 }, 0);
        await stores.events.append(second.lease, [done()]);
        await lost({ seq: 8, epoch: first.lease.epoch }, 5);
      }));

    test("arrive in batches that fit into a reader's memory", () =>
      inWorld(open, async ({ stores }) => {
        const claim = await claimed(stores, "t");
        await stores.events.append(claim.lease, [...upTo(500).map((n) => delta(`${n}`)), done()]);
        for await (const batch of stores.events.read(keyOf(claim), 0, new AbortController().signal)) {
          expect(batch.length).toBeGreaterThan(0);
          expect(batch.length).toBeLessThanOrEqual(64);
        }
        const big = await claimed(stores, "big");
        const long = "x".repeat(100_000);
        await stores.events.append(big.lease, [...upTo(40).map(() => note(long)), done()]);
        for await (const batch of stores.events.read(keyOf(big), 0, new AbortController().signal))
          expect(batch.length).toBeLessThanOrEqual(4);
      }));

    test("wait for a reader that pauses, and nothing is lost", () =>
      inWorld(open, async ({ stores }) => {
        const claim = await claimed(stores, "t");
        const reader = stores.events.read(keyOf(claim), 0, new AbortController().signal);
        await stores.events.append(claim.lease, [note("first")]);
        const seen = [...((await reader.next()).value ?? [])];
        for (let n = 0; n < 30; n++)
          await stores.events.append(
            claim.lease,
            upTo(50).map((m) => delta(`${n}.${m}`)),
          );
        await stores.events.append(claim.lease, [done()]);
        for await (const batch of reader) seen.push(...batch);
        expect(seqsOf(seen)).toEqual(upTo(1502));
      }));

    test("are awaited for a waiting run", () =>
      inWorld(open, async ({ stores }) => {
        const first = await claimed(stores, "t");
        const waiting = newRun("t");
        await stores.runs.start(ADA, waiting, "queue");
        const key = { owner: ADA, thread_id: "t", run_id: waiting.id };
        expect(await stores.events.bounds(key)).toEqual({ first: 0, last: 0 });
        const reading = readAll(stores, key);
        await stores.events.append(first.lease, [done()]);
        const claim = await stores.runs.claimNext(ADA, "t");
        if (!claim) throw new Error("It was not claimed.");
        await stores.events.append(claim.lease, [note("x"), done()]);
        expect(seqsOf(await reading)).toEqual([1, 2]);
      }));

    test("that are deleted while a reader follows are reported instead of awaited", () =>
      inWorld(open, async ({ stores }) => {
        const claim = await claimed(stores, "t");
        await stores.events.append(claim.lease, [...upTo(200).map(() => delta("x")), done()]);
        const reader = stores.events.read(keyOf(claim), 0, new AbortController().signal);
        await reader.next();
        await stores.threads.delete(ADA, "t");
        await expect(reader.next()).rejects.toMatchObject({ code: "events_expired" });
      }));

    test("end immediately for a reader whose signal aborts", () =>
      inWorld(open, async ({ stores }) => {
        const claim = await claimed(stores, "t");
        const aborted = AbortSignal.abort();
        expect(await readAll(stores, keyOf(claim), 0, aborted)).toEqual([]);

        const waits = new AbortController();
        const reading = readAll(stores, keyOf(claim), 0, waits.signal);
        await turn();
        waits.abort();
        expect(await reading).toEqual([]);

        await stores.events.append(
          claim.lease,
          upTo(200).map(() => delta("x")),
        );
        const reads = new AbortController();
        const reader = stores.events.read(keyOf(claim), 0, reads.signal);
        await reader.next();
        reads.abort();
        expect(await reader.next()).toEqual({ done: true, value: undefined });
      }));

    test("reach a thousand readers, and leave nothing behind of a thousand others that have left", () =>
      inWorld(open, async ({ stores }) => {
        const claim = await claimed(stores, "t");
        await stores.events.append(claim.lease, [note("x")]);
        const leaving = new AbortController();
        const { signal } = leaving;
        const staying = upTo(1000).map(() => readAll(stores, keyOf(claim)));
        const waiting = upTo(1000).map(() => readAll(stores, keyOf(claim), 1, signal));
        const breaking = upTo(50).map(() => readSome(stores, keyOf(claim), 1));
        await Promise.all(breaking);
        await turn();
        leaving.abort();
        expect((await Promise.all(waiting)).flat()).toEqual([]);
        expect(getEventListeners(signal, "abort")).toEqual([]);
        for (let n = 0; n < 10; n++) await stores.events.append(claim.lease, [delta(`${n}`)]);
        await stores.events.append(claim.lease, [done()]);
        for (const entries of await Promise.all(staying)) expect(entries).toHaveLength(12);
      }));
  });
}
