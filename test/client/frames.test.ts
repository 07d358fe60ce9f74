import fc from "fast-check";
import { expect, test } from "vitest";
import { type Frame, frames } from "../../src/client/frames.ts";
import { collect } from "../support/library.ts";

async function read(chunks: readonly Uint8Array[], maxLength?: number): Promise<Frame[]> {
  const body = (async function* () {
    yield* chunks;
  })();
  return collect(frames(body, maxLength));
}

const bytes = (text: string) => new TextEncoder().encode(text);
const ends = fc.constantFrom("\n", "\r", "\r\n");

test("frames are the same with every line ending and every split into chunks", async () => {
  const text = fc.string({ unit: "grapheme" }).filter((each) => !/[\r\n\0]/.test(each));
  const sent = fc.array(fc.record({ id: text, event: text.filter(Boolean), data: text }), { maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(sent, ends, fc.array(fc.nat(200)), async (all, end, cuts) => {
      const lines = all.flatMap(({ id, event, data }) => [
        ": comment",
        `id: ${id}`,
        `event: ${event}`,
        `data: ${data}`,
        "",
      ]);
      const whole = bytes(lines.map((line) => line + end).join(""));
      const places = [0, ...cuts.map((cut) => Math.min(cut, whole.length)).toSorted((a, b) => a - b)];
      const chunks = places.map((from, index) => whole.subarray(from, places[index + 1]));
      expect(await read(chunks)).toEqual(all);
    }),
  );
});

test.each<[string, string, Partial<Frame>[]]>([
  ["lines of data are joined", "data: a\ndata:b\ndata\n\n", [{ data: "a\nb\n" }]],
  ["one space after the colon is dropped, others are kept", "data:  a \n\n", [{ data: " a " }]],
  ["a frame without data is skipped", "event: ping\n\ndata: a\n\n", [{ event: "message", data: "a" }]],
  ["a frame that is cut off is dropped", "data: a\n\ndata: b\n", [{ data: "a" }]],
  ["a byte order mark is skipped", "\uFEFFdata: a\n\n", [{ data: "a" }]],
])("%s", async (_, text, expected) => {
  expect(await read([bytes(text)])).toMatchObject(expected);
});

test.each(["data: xxxxxxxxxxxx", "data: xxx\ndata: xxx\n"])(
  "an endless event is refused: %j",
  async (text) => {
    await expect(read([bytes(text)], 12)).rejects.toThrow("longer than 12 characters");
    expect(await read([bytes("data: xxxxxx\n\ndata: xxxxxx\n\n")], 12)).toHaveLength(2);
  },
);
