import { describe, expect, test } from "vitest";
import type { Stream } from "../../../src/agent/core/stream.ts";
import { interleave } from "../../../src/agent/core/tool-calls.ts";

async function all<T, E>(stream: Stream<T, E>): Promise<{ events: E[]; result: T }> {
  const events: E[] = [];
  for (;;) {
    const item = await stream.next();
    if (item.done) return { events, result: item.value };
    events.push(item.value);
  }
}

async function* counting(name: string, to: number): Stream<string, string> {
  for (let n = 1; n <= to; n++) {
    await null;
    yield `${name}${n}`;
  }
  return name;
}

/** Streams without end, and how many of them were closed. */
function lastingOnes() {
  let ended = 0;
  async function* lasting(): Stream<void, number> {
    try {
      for (;;) yield 1;
    } finally {
      ended++;
    }
  }
  return { lasting, ended: () => ended };
}

describe("several streams as one", () => {
  test("yield everything in each stream's order, and return the results in the given order", async () => {
    const { events, result } = await all(
      interleave([counting("a", 3), counting("b", 1), counting("c", 2)], 8),
    );
    expect(result).toEqual(["a", "b", "c"]);
    expect(events.toSorted()).toEqual(["a1", "a2", "a3", "b1", "c1", "c2"]);
    expect(events.filter((event) => event.startsWith("a"))).toEqual(["a1", "a2", "a3"]);
  });

  test("return nothing if there are none", async () => {
    expect(await all(interleave<never, never>([], 4))).toEqual({ events: [], result: [] });
  });

  test("continue only after their last event was read", async () => {
    const steps: string[] = [];
    async function* careful(): Stream<void, string> {
      yield "asked";
      steps.push("went on");
    }
    for await (const event of interleave([careful()], 1)) {
      await new Promise((resolve) => setImmediate(resolve));
      steps.push(`took ${event}`);
    }
    expect(steps).toEqual(["took asked", "went on"]);
  });

  test("all end with the first failure", async () => {
    async function* failing(): Stream<void, number> {
      yield 0;
      throw new Error("broken");
    }
    const { lasting, ended } = lastingOnes();
    await expect(all(interleave([lasting(), failing(), lasting()], 3))).rejects.toThrow("broken");
    await expect.poll(ended).toBe(2);
  });

  test("all end when their reader leaves", async () => {
    const { lasting, ended } = lastingOnes();
    for await (const _ of interleave([lasting(), lasting()], 2)) break;
    await expect.poll(ended).toBe(2);
  });
});
