// What every ThreadStore promises of the bytes that it counts for each thread.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Stores } from "../../src/agent/core/stores.ts";
import { ADA, claimed, done, inWorld, message, type Open } from "../engine/stores/fixture.ts";

const THREADS = ["a", "b", "c"] as const;
const Id = fc.constantFrom(...THREADS);
const Text = fc.string({ unit: "grapheme", maxLength: 40 });

/** What happens to the threads, in this order. A step that its thread refuses changes nothing. */
const Step = fc.oneof(
  fc.record({ what: fc.constant("say" as const), thread: Id, texts: fc.array(Text, { maxLength: 4 }) }),
  fc.record({
    what: fc.constant("rewind" as const),
    thread: Id,
    place: fc.nat(5),
    texts: fc.array(Text, { maxLength: 2 }),
  }),
  fc.record({ what: fc.constant("fork" as const), thread: Id, to: Id, place: fc.nat(5) }),
  fc.record({ what: fc.constant("clear" as const), thread: Id }),
  fc.record({ what: fc.constant("delete" as const), thread: Id }),
);
type Step = typeof Step extends fc.Arbitrary<infer S> ? S : never;

async function carryOut(stores: Stores, step: Step): Promise<unknown> {
  const { threads } = stores;
  const placed = async (place: number) => (await threads.messages(ADA, step.thread))[place]?.id;
  switch (step.what) {
    case "say":
      return say(stores, step.thread, step.texts);
    case "rewind": {
      const rewind_to = await placed(step.place);
      return rewind_to && say(stores, step.thread, step.texts, rewind_to);
    }
    case "fork":
      return threads.fork(ADA, step.thread, { id: step.to, metadata: {} }, await placed(step.place));
    case "clear":
      return threads.clear(ADA, step.thread);
    case "delete":
      return threads.delete(ADA, step.thread);
  }
}

/** Each message is sent twice, and counts once. */
async function say(stores: Stores, thread: string, texts: readonly string[], rewind_to?: string) {
  const { lease } = await claimed(stores, thread, rewind_to === undefined ? {} : { rewind_to });
  const events = texts.map(message);
  await stores.events.append(lease, [...events, ...events]);
  await stores.events.append(lease, [done()]);
}

async function counted({ threads }: Stores, thread: string) {
  const messages = await threads.messages(ADA, thread);
  const texts = messages.map((each) => Buffer.byteLength(JSON.stringify(each)));
  expect((await threads.measured(ADA, thread))?.bytes ?? 0).toBe(await threads.bytes(ADA, thread));
  return { bytes: await threads.bytes(ADA, thread), sum: texts.reduce((sum, bytes) => sum + bytes, 0) };
}

export function threadBytesContract(open: Open): void {
  describe("the bytes of a thread", () => {
    test("are those of its messages after any changes", () =>
      fc.assert(
        fc.asyncProperty(fc.array(Step, { minLength: 4, maxLength: 12 }), (steps) =>
          inWorld(open, async ({ stores }) => {
            for (const step of steps) {
              await carryOut(stores, step).catch((error: unknown) => {
                expect(error).toMatchObject({ code: "already_exists" });
              });
              for (const thread of THREADS) {
                const { bytes, sum } = await counted(stores, thread);
                expect(bytes).toBe(sum);
              }
            }
          }),
        ),
        { numRuns: 15 },
      ));

    test("include those that it begins with", () =>
      inWorld(open, async ({ stores }) => {
        const messages = ["é", "two"].map((text) => message(text).data.message);
        await stores.threads.create(ADA, { id: "t", metadata: {}, messages });
        const { bytes, sum } = await counted(stores, "t");
        expect(bytes).toBe(sum);
        expect(bytes).toBeGreaterThan(100);
        expect(await stores.threads.bytes(ADA, "unknown")).toBe(0);
        expect(await stores.threads.measured(ADA, "unknown")).toBeUndefined();
      }));
  });
}
