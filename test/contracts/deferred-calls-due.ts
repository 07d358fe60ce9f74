// What every DeferredCallStore promises of threads that can continue: each is found, and given to one at a time.

import { describe, expect, test } from "vitest";
import type { DueCalls } from "../../src/agent/core/deferred-calls.ts";
import type { Owner } from "../../src/protocol/ids.ts";
import {
  ADA,
  BOB,
  claimed,
  done,
  inWorld,
  newRun,
  type Open,
  ruleTest,
  upTo,
} from "../engine/stores/fixture.ts";
import { keyOf, LEASE_MS, MINUTE, newCall, reply, withThread } from "../engine/stores/fixture-calls.ts";

export function dueCallsContract(open: Open): void {
  const rule = ruleTest(open);
  describe("threads that can continue", () => {
    const due = (...call_ids: string[]): DueCalls => ({ owner: ADA, thread_id: "t", call_ids });

    test("are found once a call was delivered, or was accepted and has expired", () =>
      withThread(open, async ({ stores: { deferredCalls: calls }, advance }) => {
        const [sent, accepted, delivered] = [newCall("sent"), newCall("accepted"), newCall("delivered")];
        for (const call of [sent, accepted, delivered]) await calls.open(call);
        for (const call of [accepted, delivered]) await calls.accept(keyOf(call));
        expect(await calls.due(10)).toEqual([]);
        await calls.deliver(delivered.token_hash, reply(1));
        expect(await calls.due(10)).toEqual([due("delivered")]);
        await calls.forget(keyOf(delivered));
        advance(30 * MINUTE - 1);
        expect(await calls.due(10)).toEqual([]);
        advance(1);
        expect(await calls.due(10)).toEqual([due("accepted")]);
        await calls.forget(keyOf(accepted));
        advance(LEASE_MS);
        expect(await calls.due(10)).toEqual([]);
      }));

    rule("are found once an abandoned call has its result or has expired", () =>
      withThread(open, async ({ stores: { deferredCalls: calls }, advance }) => {
        const [left, late] = [newCall("left"), newCall("late")];
        for (const call of [left, late]) {
          await calls.open(call);
          await calls.leave(keyOf(call));
        }
        expect(await calls.due(10)).toEqual([]);
        await calls.deliver(late.token_hash, reply(1));
        expect(await calls.due(10)).toEqual([due("late")]);
        await calls.forget(keyOf(late));
        advance(30 * MINUTE);
        expect(await calls.due(10)).toEqual([due("left")]);
      }),
    );

    test("are given to one process at a time, and again after each lease until the calls are deleted", () =>
      withThread(open, async ({ stores: { deferredCalls: calls }, advance }) => {
        const call = newCall("a");
        await calls.open(call);
        await calls.deliver(call.token_hash, reply(1));
        for (const _ of upTo(3)) {
          const given = await Promise.all(upTo(3).map(() => calls.due(10)));
          expect(given.flat()).toEqual([due("a")]);
          advance(LEASE_MS - 1);
          expect(await calls.due(10)).toEqual([]);
          advance(1);
        }
        await calls.forget(keyOf(call));
        expect(await calls.due(10)).toEqual([]);
      }));

    test("are found immediately with every new result, including all available ones", () =>
      withThread(open, async ({ stores: { deferredCalls: calls }, advance }) => {
        const [a, b, c] = [newCall("a"), newCall("b"), newCall("c")];
        for (const call of [a, b, c]) await calls.open(call);
        await calls.deliver(a.token_hash, reply(1));
        expect(await calls.due(10)).toEqual([due("a")]);
        await calls.deliver(b.token_hash, reply(2));
        const [both] = await calls.due(10);
        expect(both?.call_ids.toSorted()).toEqual(["a", "b"]);
        await calls.forget(keyOf(a));
        advance(LEASE_MS);
        expect(await calls.due(10)).toEqual([due("b")]);
      }));

    test("are not found while a run is active or waiting, but after it has ended", () =>
      inWorld(open, async ({ stores, advance }) => {
        const { deferredCalls: calls, events, runs } = stores;
        const call = newCall("a");
        const { lease } = await claimed(stores, "t");
        await calls.open(call);
        await calls.accept(keyOf(call));
        await calls.deliver(call.token_hash, reply(1));
        expect(await calls.due(10)).toEqual([]);
        await runs.start(ADA, newRun("t"), "queue");
        await events.append(lease, [done("interrupted")]);
        advance(LEASE_MS);
        expect(await calls.due(10)).toEqual([]);
        const next = await runs.claimNext(ADA, "t");
        if (next) await events.append(next.lease, [done("interrupted")]);
        advance(LEASE_MS);
        expect(await calls.due(10)).toEqual([due("a")]);
      }));

    test("are returned up to the requested number, and tenants take turns", () =>
      inWorld(open, async ({ stores: { deferredCalls: calls, threads }, advance }) => {
        const deliver = async (owner: Owner, thread_id: string) => {
          await threads.create(owner, { id: thread_id, metadata: {} });
          const call = newCall("a", { owner, thread_id });
          await calls.open(call);
          await calls.deliver(call.token_hash, reply(1));
        };
        for (const n of upTo(20)) await deliver(n % 2 ? ADA : BOB, `t${n}`);
        advance(1);
        await deliver({ tenant: "other", user: "eve" }, "late");
        const first = await calls.due(2);
        expect(first.map(({ owner }) => owner.tenant).sort()).toEqual(["acme", "other"]);
        const rest = [...(await calls.due(3)), ...(await calls.due(100))];
        const found = [...first, ...rest].map(({ thread_id }) => thread_id);
        expect(found.sort()).toEqual([...upTo(20).map((n) => `t${n}`), "late"].sort());
        expect(await calls.due(100)).toEqual([]);
      }));
  });
}
