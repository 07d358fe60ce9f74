import type { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { ownTick } from "../../../src/lib/ticks.ts";
import {
  inSlices,
  type Lists,
  listOf,
  objectOf,
  payloadOf,
} from "../../../src/server/http/long-responses.ts";

const CHARS = 100_000;
const items = Array.from({ length: 40 }, (_, index) => ({ index, text: "x".repeat(CHARS) }));

async function textOf(payload: string | Readable): Promise<string> {
  if (typeof payload === "string") return payload;
  return Buffer.concat(await payload.toArray()).toString();
}

test("while a long response is written, other tenants have their turns, and turns pass for all", async () => {
  const order: string[] = [];
  const written = (async () => {
    for await (const _ of inSlices("fat", items, JSON.stringify)) order.push("slice");
  })();
  for (let turn = 0; turn < 5; turn++) {
    await ownTick("other");
    order.push("other");
  }
  await written;
  expect(order.indexOf("other")).toBeLessThanOrEqual(2);
  expect(order.lastIndexOf("other")).toBeLessThanOrEqual(12);
  expect(order.filter((each) => each === "slice")).toHaveLength(20);
});

test("a short response waits for no turn, however many others do", async () => {
  const others = Array.from({ length: 10 }, (_, index) => ownTick(`t${index}`));
  let turns = 0;
  for (const other of others) void other.then(() => turns++);
  const few = inSlices(
    "short",
    items.slice(0, 1).map(({ index }) => ({ index })),
    JSON.stringify,
  );
  const answer = objectOf("short", { name: "items", lists: few, restOf: () => ({ next: 1 }) });
  expect(await payloadOf(answer, () => () => {})).toBe('{"items":[{"index":0}],"next":1}');
  expect(turns).toBe(0);
  await Promise.all(others);
});

test("a long list is the JSON of its items, and so is an empty one", async () => {
  const open = () => () => {};
  const written = (some: typeof items) => listOf(inSlices("t", some, JSON.stringify));
  expect(JSON.parse(await textOf(await payloadOf(written(items), open)))).toEqual(items);
  expect(await payloadOf(written([]), open)).toBe("[]");
  const object = (lists: Lists, rest: object) => objectOf("t", { name: "items", lists, restOf: () => rest });
  const empty = object(inSlices("t", [], JSON.stringify), { next: 1, none: undefined });
  expect(await payloadOf(empty, open)).toBe('{"items":[],"next":1}');
  const bare = object(inSlices("t", [1, 2], JSON.stringify), {});
  expect(await payloadOf(bare, open)).toBe('{"items":[1,2]}');
});

test("a long response is written only as far as its reader reads, and its data counts until the end", async () => {
  let written = 0;
  const unread: number[] = [];
  const toJson = (item: object) => {
    written++;
    return JSON.stringify(item);
  };
  const parts = listOf(inSlices("t", items, toJson));
  const payload = (await payloadOf(parts, () => (bytes) => unread.push(bytes), 7 * CHARS)) as Readable;
  const reader = payload[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  await reader.next();
  for (let turns = 0; turns < 50; turns++) await nextTurn();
  expect(written).toBeLessThan(8);
  payload.destroy();
  expect(Math.min(...unread)).toBeGreaterThanOrEqual(7 * CHARS);
});
