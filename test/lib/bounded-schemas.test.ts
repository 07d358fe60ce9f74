import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { boundedList } from "../../src/lib/bounded-schemas.ts";
import { type Checked, check, checkInTicks } from "../../src/lib/check.ts";
import { keepBusy } from "../support/busy.ts";

/** A list of numbers below 100, which counts the entries that are looked at. */
function counting(most: number) {
  let looked = 0;
  const entry = z.number().refine((value) => {
    looked++;
    return value < 100;
  }, "must be less than 100");
  return { list: boundedList(entry, most), looked: () => looked };
}

const times = (count: number, value: number) => Array.from({ length: count }, () => value);

const WAYS: [
  how: string,
  checked: <S extends z.ZodType>(schema: S, value: unknown) => Promise<Checked<z.output<S>>>,
][] = [
  ["at once", async (schema, value) => check(schema, value)],
  ["in turns", (schema, value) => checkInTicks(schema, value, "acme")],
];

describe.each(WAYS)("a list that is checked %s", (_, checked) => {
  test("the check of a list ends after 20 faulty entries", async () => {
    const { list, looked } = counting(10_000);
    const found = await checked(list, [...times(5, 1), ...times(5000, 100)]);
    expect("faults" in found && found.faults).toHaveLength(20);
    expect(found).toMatchObject({
      faults: [
        { path: [5], message: "must be less than 100" },
        { path: [6] },
        ...times(18, 0).map(() => ({})),
      ],
    });
    expect(looked()).toBe(25);
  });

  test("a list with fewer faulty entries reports all of its faults", async () => {
    const { list, looked } = counting(10_000);
    const found = await checked(list, [...times(500, 1), 100, ...times(500, 1), 100]);
    expect(found).toMatchObject({ faults: [{ path: [500] }, { path: [1001] }] });
    expect(looked()).toBe(1002);
  });

  test("each entry of a valid list is checked once and returned", async () => {
    const { list, looked } = counting(10_000);
    const values = Array.from({ length: 5000 }, (_, index) => index % 100);
    expect(await checked(list, values)).toEqual({ value: values });
    expect(looked()).toBe(5000);
  });

  test("a list that is too long is refused before any entry is checked, even with further limits", async () => {
    const { list, looked } = counting(100);
    expect(await checked(list.min(1), times(101, 1))).toMatchObject({
      faults: [{ path: [], message: "must have at most 100 entries" }],
    });
    expect(await checked(list.min(1), [])).toMatchObject({
      faults: [{ message: "must have at least 1 entry" }],
    });
    expect(await checked(list, "text")).toMatchObject({ faults: [{ message: "must be a list" }] });
    expect(looked()).toBe(0);
  });

  test("a list in a union, and nested lists, stop as early", async () => {
    const { list, looked } = counting(1000);
    const lists = z.union([z.string(), boundedList(list, 1000)]);
    const found = await checked(
      lists,
      Array.from({ length: 1000 }, () => times(1000, 100)),
    );
    expect("faults" in found && found.faults).toHaveLength(400);
    expect(looked()).toBe(400);
  });
});

test("the check of a long list yields to other work, even for nested lists", async () => {
  const slow = z.number().refine(() => {
    keepBusy();
    return true;
  });
  for (const [list, value] of [
    [boundedList(slow, 1000), times(3, 1)],
    [boundedList(slow, 1000), times(40, 1)],
    [z.object({ lists: boundedList(boundedList(slow, 10), 10) }), { lists: [times(3, 1)] }],
  ] as const) {
    let turns = 0;
    void turn().then(() => turns++);
    expect(await checkInTicks(list, value, "acme")).toEqual({ value });
    expect(turns).toBe(1);
  }
});

test("openapi.yaml describes it like any other list", () => {
  expect(z.toJSONSchema(boundedList(z.string(), 3).min(1))).toEqual(
    z.toJSONSchema(z.array(z.string()).max(3).min(1)),
  );
});
