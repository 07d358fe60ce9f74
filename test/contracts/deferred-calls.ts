// What every DeferredCallStore promises: a call has one result, in any order of events, and each thread
// that can continue is found.

import { describe, expect, test } from "vitest";
import { tokenHash } from "../../src/agent/core/deferred-calls.ts";
import { ADA, type Open, ruleTest, upTo } from "../engine/stores/fixture.ts";
import { keyOf, MINUTE, newCall, reply, withThread } from "../engine/stores/fixture-calls.ts";
import { dueCallsContract } from "./deferred-calls-due.ts";

export function deferredCallsContract(open: Open): void {
  const rule = ruleTest(open);
  describe("a call with a deferred result", () => {
    test("is kept from before it is sent until it is deleted", () =>
      withThread(open, async ({ stores: { deferredCalls: calls } }) => {
        const call = newCall("a");
        expect(await calls.get(keyOf(call))).toBeUndefined();
        expect(await calls.isKept(call.token_hash)).toBe(false);
        await calls.open(call);
        expect(await calls.isKept(call.token_hash)).toBe(true);
        expect(await calls.get(keyOf(call))).toEqual({ ...call, state: "sent" });
        for (const _ of upTo(2))
          expect(await calls.accept(keyOf(call))).toEqual({ ...call, state: "accepted" });
        expect(await calls.get(keyOf(call))).toEqual({ ...call, state: "accepted" });
        const delivered = { ...call, state: "delivered", reply: reply({ degrees: 4 }) };
        expect(await calls.deliver(call.token_hash, reply({ degrees: 4 }))).toEqual(delivered);
        expect(await calls.get(keyOf(call))).toEqual(delivered);
        for (const _ of upTo(2)) await calls.forget(keyOf(call));
        expect(await calls.get(keyOf(call))).toBeUndefined();
        expect(await calls.isKept(call.token_hash)).toBe(false);
        expect(await calls.accept(keyOf(call))).toBeUndefined();
        expect(await calls.deliver(call.token_hash, reply("late"))).toBeUndefined();
      }));

    rule("accepts a result that arrives before the answer", () =>
      withThread(open, async ({ stores: { deferredCalls: calls } }) => {
        const call = newCall("a");
        await calls.open(call);
        const delivered = { ...call, state: "delivered", reply: reply(1) };
        expect(await calls.deliver(call.token_hash, reply(1))).toEqual(delivered);
        expect(await calls.accept(keyOf(call))).toEqual(delivered);
        expect(await calls.get(keyOf(call))).toEqual(delivered);
      }),
    );

    test("accepts only the first result, however many arrive at once", () =>
      withThread(open, async ({ stores: { deferredCalls: calls } }) => {
        const call = newCall("a");
        await calls.open(call);
        const results = await Promise.all(upTo(5).map((n) => calls.deliver(call.token_hash, reply(n))));
        const [taken, ...others] = results.filter((each) => each !== undefined);
        expect(taken).toMatchObject({ state: "delivered" });
        expect(others).toEqual([]);
        expect(await calls.deliver(call.token_hash, reply(6))).toBeUndefined();
        expect(await calls.get(keyOf(call))).toEqual(taken);
      }));

    rule("loses no result to an answer that arrives at the same time", () =>
      withThread(open, async ({ stores: { deferredCalls: calls } }) => {
        for (const n of upTo(10)) {
          const call = newCall(`c${n}`);
          await calls.open(call);
          const accepted = () => calls.accept(keyOf(call));
          const delivered = () => calls.deliver(call.token_hash, reply(n));
          await Promise.all(n % 2 ? [accepted(), delivered()] : [delivered(), accepted()]);
          expect(await calls.get(keyOf(call))).toMatchObject({ state: "delivered", reply: reply(n) });
        }
      }),
    );

    test("can be deleted during simultaneous changes", () =>
      withThread(open, async ({ stores: { deferredCalls: calls } }) => {
        for (const n of upTo(10)) {
          const call = newCall(`c${n}`);
          await calls.open(call);
          await Promise.all([
            ...[calls.accept(keyOf(call)), calls.forget(keyOf(call))],
            ...[calls.deliver(call.token_hash, reply(n)), calls.get(keyOf(call))],
          ]);
          expect(await calls.get(keyOf(call))).toBeUndefined();
          expect(await calls.deliver(call.token_hash, reply("late"))).toBeUndefined();
        }
        expect(await calls.due(10)).toEqual([]);
      }));

    rule("accepts a result until it expires, but not later", () =>
      withThread(open, async ({ stores: { deferredCalls: calls }, advance }) => {
        const [early, late, unanswered] = [newCall("early"), newCall("late"), newCall("unanswered")];
        for (const call of [early, late, unanswered]) await calls.open(call);
        for (const call of [early, late]) await calls.accept(keyOf(call));
        advance(30 * MINUTE - 1);
        expect(await calls.deliver(early.token_hash, reply(1))).toMatchObject({ state: "delivered" });
        advance(1);
        for (const call of [early, late, unanswered])
          expect(await calls.deliver(call.token_hash, reply(2))).toBeUndefined();
        expect(await calls.get(keyOf(early))).toMatchObject({ reply: reply(1) });
        expect(await calls.get(keyOf(late))).toEqual({ ...late, state: "accepted" });
      }),
    );

    rule("that is sent again is a new one: its data is dropped, and the old token is refused", () =>
      withThread(open, async ({ stores: { deferredCalls: calls } }) => {
        const [first, second, third] = [newCall("a"), newCall("a", { run_id: "run_2" }), newCall("a")];
        await calls.open(first);
        await calls.accept(keyOf(first));
        await calls.open(second);
        expect(await calls.get(keyOf(first))).toEqual({ ...second, state: "sent" });
        expect(await calls.deliver(first.token_hash, reply("old"))).toBeUndefined();
        expect(await calls.deliver(second.token_hash, reply("new"))).toMatchObject({ run_id: "run_2" });
        await calls.open(third);
        expect(await calls.get(keyOf(third))).toEqual({ ...third, state: "sent" });
        expect(await calls.due(10)).toEqual([]);
      }),
    );

    rule("that is abandoned accepts its result late, once, however often it is abandoned", () =>
      withThread(open, async ({ stores: { deferredCalls: calls } }) => {
        for (const isAccepted of [false, true]) {
          const call = newCall(`c${isAccepted}`);
          await calls.open(call);
          if (isAccepted) await calls.accept(keyOf(call));
          for (const _ of upTo(2)) expect(await calls.leave(keyOf(call))).toEqual({ ...call, state: "left" });
          expect(await calls.accept(keyOf(call))).toEqual({ ...call, state: "left" });
          const late = { ...call, state: "late", reply: reply(1) };
          expect(await calls.deliver(call.token_hash, reply(1))).toEqual(late);
          expect(await calls.deliver(call.token_hash, reply(2))).toBeUndefined();
          expect(await calls.leave(keyOf(call))).toEqual(late);
          expect(await calls.close(keyOf(call))).toEqual(late);
          expect(await calls.get(keyOf(call))).toEqual(late);
        }
        expect(await calls.leave(keyOf(newCall("unknown")))).toBeUndefined();
      }),
    );

    rule("that is closed accepts no result, but returns an earlier one", () =>
      withThread(open, async ({ stores: { deferredCalls: calls } }) => {
        const [sent, accepted, left, delivered] = ["sent", "accepted", "left", "delivered"].map((id) =>
          newCall(id),
        );
        if (!sent || !accepted || !left || !delivered) return;
        for (const call of [sent, accepted, left, delivered]) await calls.open(call);
        await calls.accept(keyOf(accepted));
        await calls.leave(keyOf(left));
        await calls.deliver(delivered.token_hash, reply(1));
        for (const call of [sent, accepted, left]) {
          for (const _ of upTo(2)) expect(await calls.close(keyOf(call))).toBeUndefined();
          expect(await calls.get(keyOf(call))).toBeUndefined();
          expect(await calls.deliver(call.token_hash, reply(2))).toBeUndefined();
        }
        expect(await calls.close(keyOf(delivered))).toEqual({
          ...delivered,
          state: "delivered",
          reply: reply(1),
        });
      }),
    );

    test.each(["leave", "close"] as const)("loses no accepted result if it is %s", (how) =>
      withThread(open, async ({ stores: { deferredCalls: calls } }) => {
        for (const n of upTo(20)) {
          const call = newCall(`c${n}`);
          await calls.open(call);
          await calls.accept(keyOf(call));
          const settled = () => calls[how](keyOf(call));
          const delivered = () => calls.deliver(call.token_hash, reply(n));
          const [a, b] = await Promise.all(n % 2 ? [settled(), delivered()] : [delivered(), settled()]);
          const [seen, taken] = n % 2 ? [a, b] : [b, a];
          // The thread has it in the call's place, or it is still to come, or its sender knows that it came too late.
          if (taken?.state === "delivered") expect(seen).toEqual(taken);
          else if (taken) expect([seen?.state, taken.state]).toEqual(["left", "late"]);
          else expect([how, seen]).toEqual(["close", undefined]);
        }
      }),
    );

    rule("refuses a token that was never issued", () =>
      withThread(open, async ({ stores: { deferredCalls: calls } }) => {
        await calls.open(newCall("a"));
        for (const token of [tokenHash("guessed"), "", "*", "a", "__proto__"])
          expect(await calls.deliver(token, reply(1)), token).toBeUndefined();
      }),
    );

    test("returns its result unchanged", () =>
      withThread(open, async ({ stores: { deferredCalls: calls } }) => {
        for (const [n, text] of [
          '{"result":{"__proto__":{"a":1},"b":[null,"\\ud800 \\u0000 \\n 火 \'"]}}',
          '{"result":null}',
          '{"error":"no\\nsuch city","details":{}}',
          `{"result":"${"long ".repeat(50_000)}"}`,
        ].entries()) {
          const call = newCall(`c ${n}\n%s"`);
          await calls.open(call);
          await calls.deliver(call.token_hash, JSON.parse(text));
          const kept = await calls.get(keyOf(call));
          expect(JSON.stringify(kept?.reply)).toBe(JSON.stringify(JSON.parse(text)));
          expect(kept?.call_id).toBe(call.call_id);
        }
      }));

    rule("does not change if the caller changes its own copy", () =>
      withThread(open, async ({ stores: { deferredCalls: calls } }) => {
        const call = newCall("a");
        const [mine, brought] = [structuredClone(call), { result: { list: [1] } }];
        await calls.open(mine);
        mine.tool = "changed";
        const delivered = await calls.deliver(call.token_hash, brought);
        brought.result.list.push(2);
        if (delivered) delivered.run_id = "changed";
        expect(await calls.get(keyOf(call))).toEqual({
          ...call,
          state: "delivered",
          reply: reply({ list: [1] }),
        });
      }),
    );
  });

  describe("a thread's calls", () => {
    rule("belong to it, and do not exist without it", () =>
      withThread(open, async ({ stores: { deferredCalls: calls } }) => {
        const call = newCall("a", { thread_id: "unknown" });
        await expect(calls.open(call)).rejects.toMatchObject({ code: "not_found" });
        expect(await calls.get(keyOf(call))).toBeUndefined();
        expect(await calls.deliver(call.token_hash, reply(1))).toBeUndefined();
      }),
    );

    test.each(["delete", "clear"] as const)("are deleted with it: %s", (how) =>
      withThread(open, async ({ stores: { deferredCalls: calls, threads }, advance }) => {
        const [sent, accepted, delivered] = [newCall("sent"), newCall("accepted"), newCall("delivered")];
        for (const call of [sent, accepted, delivered]) await calls.open(call);
        await calls.accept(keyOf(accepted));
        await calls.deliver(delivered.token_hash, reply(1));
        await threads[how](ADA, "t");
        await threads.create(ADA, { id: "t", metadata: {} }).catch(() => {});
        for (const call of [sent, accepted, delivered]) {
          expect(await calls.get(keyOf(call))).toBeUndefined();
          expect(await calls.deliver(call.token_hash, reply(2))).toBeUndefined();
        }
        advance(40 * MINUTE);
        expect(await calls.due(10)).toEqual([]);
      }),
    );

    test("are different from another thread's calls with the same names", () =>
      withThread(open, async ({ stores: { deferredCalls: calls, threads } }) => {
        await threads.create(ADA, { id: "u", metadata: {} });
        const [here, there] = [newCall("a"), newCall("a", { thread_id: "u" })];
        await calls.open(here);
        expect(await calls.get(keyOf(there))).toBeUndefined();
        await calls.open(there);
        await calls.forget(keyOf(here));
        expect(await calls.deliver(there.token_hash, reply(1))).toMatchObject({ thread_id: "u" });
      }));

    rule("are limited to a hundred; expired ones that were never accepted are dropped first", () =>
      withThread(open, async ({ stores: { deferredCalls: calls }, advance }) => {
        const all = upTo(105).map((n) => newCall(`c${n}`));
        const outcomes = await Promise.allSettled(all.map((call) => calls.open(call)));
        const refused = outcomes.filter(({ status }) => status === "rejected");
        expect(refused).toHaveLength(5);
        for (const each of refused) expect(each).toMatchObject({ reason: { code: "limit_exceeded" } });
        const kept = all.filter((_, n) => outcomes[n]?.status === "fulfilled");
        const [first = newCall("x"), second = newCall("x"), ...others] = kept;
        await calls.open(newCall(first.call_id));
        await calls.forget(keyOf(first));
        await calls.open(newCall("more"));
        await expect(calls.open(newCall("too many"))).rejects.toMatchObject({ code: "limit_exceeded" });
        for (const call of others) await calls.accept(keyOf(call));
        advance(30 * MINUTE);
        for (const n of upTo(2))
          await calls.open(newCall(`later${n}`, { expires_at: "2026-11-21T11:00:00Z" }));
        expect(await calls.get(keyOf(second))).toBeUndefined();
        await expect(calls.open(newCall("too many"))).rejects.toMatchObject({ code: "limit_exceeded" });
      }),
    );
  });

  dueCallsContract(open);
}
