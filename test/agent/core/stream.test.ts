import { describe, expect, test } from "vitest";
import { mapEvents, type Stream, tap } from "../../../src/agent/core/stream.ts";

function counting(failure?: Error) {
  const source = { isClosed: false };
  async function* events(): Stream<string, number> {
    try {
      yield 1;
      yield 2;
      if (failure) throw failure;
      return "done";
    } finally {
      source.isClosed = true;
    }
  }
  return { source, stream: events() };
}

async function read<T, E>(stream: Stream<T, E>) {
  const events: E[] = [];
  for (;;) {
    const item = await stream.next();
    if (item.done) return { events, result: item.value };
    events.push(item.value);
  }
}

const wrappers = [
  ["tap", (stream: Stream<string, number>, see: (event: number) => void) => tap(stream, see)],
  [
    "mapEvents",
    (stream: Stream<string, number>, see: (event: number) => void) =>
      mapEvents(stream, (event) => {
        see(event);
        return [event];
      }),
  ],
] as const;

describe.each(wrappers)("%s", (_, wrap) => {
  test("passes on the events and the result", async () => {
    const seen: number[] = [];
    const seenBy = await read(wrap(counting().stream, (event) => seen.push(event)));

    expect({ ...seenBy, seen }).toEqual({ events: [1, 2], result: "done", seen: [1, 2] });
  });

  test("passes on the failure", async () => {
    await expect(read(wrap(counting(new Error("broken")).stream, () => {}))).rejects.toThrow("broken");
  });

  test("closes the stream when its reader stops early", async () => {
    const { source, stream } = counting();
    for await (const _event of wrap(stream, () => {})) break;

    expect(source.isClosed).toBe(true);
  });

  test("closes the stream when the callback throws", async () => {
    const { source, stream } = counting();
    const refuse = () => {
      throw new Error("refused");
    };

    await expect(read(wrap(stream, refuse))).rejects.toThrow("refused");
    expect(source.isClosed).toBe(true);
  });
});

test("mapEvents replaces an event with several events or none", async () => {
  const mapped = mapEvents(counting().stream, (event) => (event === 1 ? [] : ["a", "b"]));

  expect(await read(mapped)).toEqual({ events: ["a", "b"], result: "done" });
});

test("tap reports when an event is requested", async () => {
  const order: string[] = [];
  await read(
    tap(
      counting().stream,
      (event) => order.push(`event ${event}`),
      () => order.push("pull"),
    ),
  );

  expect(order).toEqual(["pull", "event 1", "pull", "event 2", "pull"]);
});
