// What a user's bus promises to those who listen.

import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import type { EventBus, UserEvent } from "../../src/agent/core/bus.ts";
import { ADA, BOB, inWorld, NEIGHBOURS, type Open, ruleTest, upTo } from "../engine/stores/fixture.ts";

/** Events may wait for a subscriber up to here. */
const MOST = 1000;

export function busContract(open: Open): void {
  const rule = ruleTest(open);
  const withBus = (body: (bus: EventBus, close: () => Promise<void>) => Promise<void>) =>
    inWorld(open, ({ stores }) => body(stores.bus, () => stores.close()));

  describe("a user's bus", () => {
    test("delivers events published after the call, in order, to every listener", () =>
      withBus(async (bus) => {
        const { signal } = new AbortController();
        bus.publish(ADA, started(0));
        const [one, two] = [bus.subscribe(ADA, signal), bus.subscribe(ADA, signal)];
        for (const n of upTo(3)) bus.publish(ADA, started(n));
        const late = bus.subscribe(ADA, signal);
        bus.publish(ADA, started(4));
        bus.publish(ADA, LAST);
        expect(await untilLast(one)).toEqual(upTo(4).map(started));
        expect(await untilLast(two)).toEqual(upTo(4).map(started));
        expect(await untilLast(late)).toEqual([started(4)]);
      }));

    test.each(NEIGHBOURS)("cannot be received by %s", (_, owner, neighbour) =>
      withBus(async (bus) => {
        const { signal } = new AbortController();
        const [own, other] = [bus.subscribe(owner, signal), bus.subscribe(neighbour, signal)];
        bus.publish(owner, started(1));
        bus.publish(neighbour, started(2));
        for (const each of [owner, neighbour]) bus.publish(each, LAST);
        expect(await untilLast(own)).toEqual([started(1)]);
        expect(await untilLast(other)).toEqual([started(2)]);
      }),
    );

    test("delivers an announcement to every listener of every owner", () =>
      withBus(async (bus, close) => {
        const leaving = new AbortController();
        const [one, two] = [
          bus.subscribe(ADA, leaving.signal),
          bus.subscribe(ADA, new AbortController().signal),
        ];
        const other = bus.subscribe(BOB, leaving.signal);
        bus.publish(ADA, started(1));
        bus.announce(CHANGED);
        expect(await taken(one, 2)).toEqual([started(1), CHANGED]);
        expect(await taken(other, 1)).toEqual([CHANGED]);
        leaving.abort();
        bus.announce(CHANGED);
        bus.publish(ADA, LAST);
        expect(await untilLast(two)).toEqual([started(1), CHANGED, CHANGED]);
        await close();
        bus.announce(CHANGED);
      }));

    rule("accepts events without a listener, and after it is closed", () =>
      withBus(async (bus, close) => {
        bus.publish(ADA, started(1));
        await close();
        bus.publish(ADA, started(2));
      }),
    );
  });

  describe("a subscription", () => {
    test("ends immediately when its signal aborts, whether it is waiting or behind", () =>
      withBus(async (bus) => {
        const leaving = new AbortController();
        const [waits, behind] = [bus.subscribe(ADA, leaving.signal), bus.subscribe(ADA, leaving.signal)];
        const stays = bus.subscribe(ADA, new AbortController().signal);
        const next = waits.next();
        bus.publish(ADA, started(1));
        await next;
        const last = waits.next();
        leaving.abort();
        expect(await last).toEqual(OVER);
        expect(await behind.next()).toEqual(OVER);
        expect(await bus.subscribe(ADA, leaving.signal).next()).toEqual(OVER);
        bus.publish(ADA, LAST);
        expect(await untilLast(stays)).toEqual([started(1)]);
        expect(getEventListeners(leaving.signal, "abort")).toEqual([]);
      }));

    rule("ends when it is returned, whether it was pulled before, is waiting, or neither", () =>
      withBus(async (bus) => {
        const { signal } = new AbortController();
        const listens = bus.subscribe(ADA, signal);
        bus.publish(ADA, started(1));
        for await (const event of listens) {
          expect(event).toEqual(started(1));
          break;
        }
        expect(await bus.subscribe(ADA, signal).return()).toEqual(OVER);
        const waits = bus.subscribe(ADA, signal);
        const next = waits.next();
        expect(await waits.return()).toEqual(OVER);
        expect(await next).toEqual(OVER);
        expect(await waits.next()).toEqual(OVER);
        expect(getEventListeners(signal, "abort")).toEqual([]);
      }),
    );

    test("ends with a reason when the store closes", () =>
      withBus(async (bus, close) => {
        const { signal } = new AbortController();
        const [waits, behind] = [bus.subscribe(ADA, signal), bus.subscribe(BOB, signal)];
        const refused = expect(waits.next()).rejects.toMatchObject({ code: "unavailable" });
        bus.publish(BOB, started(1));
        await close();
        await refused;
        await expect(behind.next()).rejects.toMatchObject({ code: "unavailable" });
        expect(await waits.next()).toEqual(OVER);
        expect(getEventListeners(signal, "abort")).toEqual([]);
      }));

    rule(`that falls more than ${MOST} events behind gets an error, and no other listener does`, () =>
      withBus(async (bus) => {
        const [slow, quick] = [new AbortController(), new AbortController()];
        const behind = bus.subscribe(ADA, slow.signal);
        const follows = bus.subscribe(ADA, quick.signal);
        for (const n of upTo(MOST + 1)) {
          bus.publish(ADA, started(n));
          expect(await taken(follows, 1)).toEqual([started(n)]);
        }
        await expect(behind.next()).rejects.toMatchObject({ code: "events_expired" });
        expect(await behind.next()).toEqual(OVER);
        expect(getEventListeners(slow.signal, "abort")).toEqual([]);
        const again = bus.subscribe(ADA, slow.signal);
        for (const event of [started(0), LAST]) bus.publish(ADA, event);
        expect(await untilLast(again)).toEqual([started(0)]);
        expect(await untilLast(follows)).toEqual([started(0)]);
      }),
    );

    rule(`can be ${MOST} events behind`, () =>
      withBus(async (bus) => {
        const events = bus.subscribe(ADA, new AbortController().signal);
        for (const n of upTo(MOST)) bus.publish(ADA, started(n));
        expect(await taken(events, MOST)).toEqual(upTo(MOST).map(started));
        for (const n of upTo(MOST)) bus.publish(ADA, started(n));
        expect(await taken(events, MOST)).toEqual(upTo(MOST).map(started));
        bus.publish(ADA, LAST);
        expect(await untilLast(events)).toEqual([]);
      }),
    );
  });
}

const CHANGED = { event: "config_changed", data: {} } as const;

const OVER = { done: true, value: undefined };

const started = (n: number): UserEvent => ({
  event: "run_started",
  data: { thread_id: "t", run_id: `run_${n}`, agent: "a" },
});

const LAST = started(-1);

/** All events before `LAST`: one that comes twice, or for another listener, is among them. */
async function untilLast(events: AsyncGenerator<UserEvent>): Promise<UserEvent[]> {
  const found: UserEvent[] = [];
  for await (const event of events) {
    if (JSON.stringify(event) === JSON.stringify(LAST)) return found;
    found.push(event);
  }
  throw new Error(`It ended after ${found.length} events.`);
}

async function taken(events: AsyncGenerator<UserEvent>, count: number): Promise<UserEvent[]> {
  const found: UserEvent[] = [];
  while (found.length < count) {
    const { value } = await events.next();
    if (value === undefined) throw new Error(`It ended after ${found.length} events.`);
    found.push(value);
  }
  return found;
}
