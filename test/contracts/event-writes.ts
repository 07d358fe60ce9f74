// What batches of events mean, for any batches: the same threads, state, log and ends in every store as in memory.

import fc from "fast-check";
import { expect, test } from "vitest";
import { userMessage } from "../../src/agent/core/message.ts";
import { newThreadId } from "../../src/agent/core/new-ids.ts";
import type { Claim, Stores } from "../../src/agent/core/stores.ts";
import { createMemoryStores } from "../../src/engine/stores/memory/index.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import {
  ADA,
  claimed,
  delta,
  done,
  failure,
  inWorld,
  message,
  note,
  type Open,
  patch,
  readAll,
  state,
} from "../engine/stores/fixture.ts";

const key = fc.constantFrom("todos", "files", "__proto__");
const member = fc.constantFrom("a", "b", "constructor");
const value = fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.constant(null));

/** `again`: a message that the thread may have already. */
const Event = fc.oneof(
  fc.string({ maxLength: 5 }).map((text) => ({ kind: "delta", text }) as const),
  fc.string({ minLength: 1, maxLength: 5 }).map((text) => ({ kind: "message", text }) as const),
  fc.constant({ kind: "again" } as const),
  fc.record({ kind: fc.constant("set" as const), key, value }),
  fc.record({ kind: fc.constant("delete" as const), key }),
  fc.record({
    kind: fc.constant("patch" as const),
    key,
    patch: fc.dictionary(member, value, { maxKeys: 3 }),
  }),
  fc.constant({ kind: "below" } as const),
);
const Run = fc.record({
  batches: fc.array(fc.array(Event, { minLength: 1, maxLength: 4 }), { maxLength: 4 }),
  /** Messages that are left for the run before its last batch; the run reads some of them. */
  left: fc.array(fc.record({ text: fc.string({ minLength: 1, maxLength: 5 }), isRead: fc.boolean() }), {
    maxLength: 2,
  }),
  end: fc.constantFrom("success", "interrupted", "cancelled", "error", "failure"),
});
type RunPlan = typeof Run extends fc.Arbitrary<infer T> ? T : never;

/** The same events for every store: ids are made once. */
function eventsOf({ batches, left, end }: RunPlan) {
  const first = message("known");
  const eventOf = (each: typeof Event extends fc.Arbitrary<infer T> ? T : never): StreamEvent => {
    if (each.kind === "delta") return delta(each.text);
    if (each.kind === "message") return message(each.text);
    if (each.kind === "again") return first;
    if (each.kind === "set") return state(each.key, each.value);
    if (each.kind === "delete") return { event: "on_state", data: { key: each.key } };
    if (each.kind === "patch") return patch(each.key, each.patch);
    return { ...state("todos", "of a subagent"), path: ["call_1"] };
  };
  const messages = left.map(({ text, isRead }) => ({ message: userMessage(text), isRead }));
  const read = messages.flatMap(({ message, isRead }) =>
    isRead ? [{ event: "on_message", data: { message } } as const] : [],
  );
  const last = end === "failure" ? failure("It broke.") : done(end);
  return {
    batches: [[note("begins"), first], ...batches.map((batch) => batch.map(eventOf))],
    messages: messages.map(({ message }) => message),
    last: [...read, last],
  };
}

async function play(stores: Stores, runs: readonly ReturnType<typeof eventsOf>[]): Promise<unknown> {
  const id = newThreadId();
  const logs: unknown[] = [];
  for (const { batches, messages, last } of runs) {
    const claim: Claim = await claimed(stores, id);
    for (const batch of batches) await stores.events.append(claim.lease, batch);
    for (const each of messages) await stores.runs.steer(ADA, id, claim.run.id, each);
    await stores.events.append(claim.lease, last);
    const entries = await readAll(stores, { owner: ADA, thread_id: id, run_id: claim.run.id });
    // A message that no event took in is given its time by the store.
    logs.push(entries.map(({ json, seq, event }) => ({ seq, event, data: JSON.parse(json).data })));
    const { status, stop_reason, error, usage } = (await stores.runs.get(ADA, id, claim.run.id)) ?? {};
    logs.push({ status, stop_reason, error, usage });
  }
  const thread = await stores.threads.get(ADA, id);
  return {
    logs,
    thread: { status: thread?.status, message_count: thread?.message_count },
    messages: await stores.threads.messages(ADA, id),
    state: await stores.threads.state(ADA, id),
  };
}

export function eventWritesContract(open: Open, numRuns: number): void {
  test("any batches of events leave the same thread, log and ends as in memory", () =>
    fc.assert(
      fc.asyncProperty(fc.array(Run, { minLength: 1, maxLength: 2 }), async (plans) => {
        const runs = plans.map(eventsOf);
        let expected: unknown;
        await inWorld(
          async (options) => createMemoryStores(options),
          async ({ stores }) => {
            expected = await play(stores, runs);
          },
        );
        await inWorld(open, async ({ stores }) => expect(await play(stores, runs)).toEqual(expected));
      }),
      { numRuns },
    ));
}
