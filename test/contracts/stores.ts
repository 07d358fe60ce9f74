// What all stores together promise: owners never meet, and what is closed says so.

import { describe, expect, test } from "vitest";
import { userMessage } from "../../src/agent/core/message.ts";
import type { Stores } from "../../src/agent/core/stores.ts";
import type { Owner } from "../../src/protocol/ids.ts";
import {
  ADA,
  claimed,
  done,
  inWorld,
  keyOf,
  message,
  NEIGHBOURS,
  newRun,
  note,
  type Open,
  readAll,
  state,
} from "../engine/stores/fixture.ts";
import { keyOf as callKeyOf, newCall, reply } from "../engine/stores/fixture-calls.ts";
import { everyCall } from "./every-call.ts";

const NEVER = new AbortController().signal;

export function storesContract(open: Open): void {
  describe("owners", () => {
    test.each(NEIGHBOURS)("are always distinct: %s", (_, owner, neighbour) =>
      inWorld(open, async ({ stores, advance }) => {
        const { threads, runs, events, deferredCalls } = stores;
        const ended = await claimed(stores, "t", { owner });
        const mine = message("mine");
        await events.append(ended.lease, [mine, state("todos", ["mine"]), done()]);
        const parent = { thread_id: "t", run_id: ended.run.id, call_id: "c", background: false };
        await threads.create(owner, { id: "child", metadata: {}, parent });
        const running = await claimed(stores, "t", { owner, idempotency_key: "k" });
        const waiting = newRun("t");
        await runs.start(owner, waiting, "queue");
        const [call, theirs] = [newCall("c", { owner }), newCall("c", { owner: neighbour })];
        await deferredCalls.open(call);
        const before = await everything(stores, owner);

        expect(await threads.get(neighbour, "t")).toBeUndefined();
        for (const query of [{}, { parent: "t" }, { children: true as const }])
          expect(await threads.list(neighbour, { limit: 10, ...query })).toEqual({ items: [] });
        expect(await threads.update(neighbour, "t", { forget: ["todos"] })).toBeUndefined();
        const rewinding = newRun("t", { rewind_to: mine.data.message.id });
        await expect(runs.start(neighbour, rewinding, "reject")).rejects.toMatchObject({
          code: "invalid_request",
        });
        expect(await threads.delete(neighbour, "t")).toBe(false);
        expect(await threads.clear(neighbour, "t")).toBe(false);
        expect(await threads.messages(neighbour, "t")).toEqual([]);
        expect(await threads.state(neighbour, "t")).toEqual({});
        expect(await runs.get(neighbour, "t", ended.run.id)).toBeUndefined();
        expect(await runs.list(neighbour, "t", { limit: 10 })).toEqual({ items: [] });
        expect(await runs.active(neighbour, "t")).toBeUndefined();
        expect(await runs.known(neighbour, "t", "k")).toBeUndefined();
        expect(await runs.claimNext(neighbour, "t")).toBeUndefined();
        for (const after of [undefined, "", ended.run.id])
          expect(await runs.begun(neighbour, "t", after)).toBeUndefined();
        for (const id of [running.run.id, waiting.id])
          expect(await runs.requestStop(neighbour, "t", id, "cancel")).toBeUndefined();
        expect(await runs.steer(neighbour, "t", running.run.id, userMessage("stolen"))).toBe(false);
        const lease = { ...running.lease, owner: neighbour };
        await expect(runs.inbox(lease)).rejects.toMatchObject({ code: "lease_lost" });
        await expect(runs.renew(lease)).rejects.toMatchObject({ code: "lease_lost" });
        await expect(runs.release(lease)).rejects.toMatchObject({ code: "lease_lost" });
        await expect(events.append(lease, [message("stolen")])).rejects.toMatchObject({ code: "lease_lost" });
        await expect(readAll(stores, { ...keyOf(ended), owner: neighbour })).rejects.toMatchObject({
          code: "not_found",
        });
        expect(await events.bounds({ ...keyOf(ended), owner: neighbour })).toEqual({ first: 0, last: 0 });
        await expect(deferredCalls.open(theirs)).rejects.toMatchObject({ code: "not_found" });
        for (const ask of [deferredCalls.get, deferredCalls.accept, deferredCalls.forget])
          expect(await ask(callKeyOf(theirs))).toBeUndefined();

        // The same names are free for the neighbour, and its own.
        const own = await runs.start(
          neighbour,
          newRun("t", { id: running.run.id, idempotency_key: "k" }),
          "reject",
        );
        if (own.outcome !== "claimed") throw new Error(own.outcome);
        await events.append(own.claim.lease, [message("theirs"), state("todos", ["theirs"]), done()]);
        expect(await threads.messages(neighbour, "t")).toHaveLength(1);
        await threads.create(neighbour, { id: "child", metadata: {}, parent });
        await threads.update(neighbour, "t", { forget: ["todos"] });
        await deferredCalls.open(theirs);
        await deferredCalls.deliver(theirs.token_hash, reply("theirs"));
        expect(await deferredCalls.due(10)).toMatchObject([{ owner: neighbour, call_ids: ["c"] }]);
        await threads.delete(neighbour, "t");
        expect(await everything(stores, owner)).toEqual(before);
        expect(await deferredCalls.get(callKeyOf(call))).toEqual({ ...call, state: "sent" });

        advance(10_001);
        const [claim] = await runs.claimAbandoned(100);
        expect(claim?.lease.owner).toEqual(owner);
      }),
    );

    test("can be many", () =>
      inWorld(open, async ({ stores }) => {
        for (let n = 0; n < 50; n++)
          await stores.threads.create({ tenant: `${n % 5}`, user: `${n}` }, { id: "t", metadata: {} });
        expect((await stores.threads.list({ tenant: "2", user: "7" }, { limit: 10 })).items).toHaveLength(1);
      }));
  });

  describe("stores", () => {
    test("answer a ping while they are open", () => inWorld(open, ({ stores }) => stores.ping()));

    test("refuse every call after they are closed", () =>
      inWorld(open, async ({ stores }) => {
        const { lease } = await claimed(stores, "t");
        await stores.close();
        await stores.close();
        const { bus } = stores;
        bus.publish(ADA, { event: "run_started", data: { thread_id: "t", run_id: "r", agent: "a" } });
        for (const call of [
          () => stores.ping(),
          ...everyCall(stores, lease),
          () => bus.subscribe(ADA, NEVER).next(),
        ])
          await expect(call(), call.toString()).rejects.toMatchObject({ code: "unavailable" });
      }));

    test("release every waiting reader when they close", () =>
      inWorld(open, async ({ stores }) => {
        const { lease } = await claimed(stores, "t");
        const reading = readAll(stores, lease);
        const refused = expect(reading).rejects.toMatchObject({ code: "unavailable" });
        await stores.events.append(lease, [note("x")]);
        await stores.close();
        await refused;
      }));
  });
}

async function everything({ threads, runs }: Stores, owner: Owner) {
  return {
    threads: await threads.list(owner, { limit: 10, children: true }),
    runs: await runs.list(owner, "t", { limit: 10 }),
    messages: await threads.messages(owner, "t"),
    state: await threads.state(owner, "t"),
  };
}
