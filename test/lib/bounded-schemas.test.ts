import { expect, test } from "vitest";
import { z } from "zod";
import { boundedList } from "../../src/lib/bounded-schemas.ts";
import { check } from "../../src/lib/check.ts";

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

test("the check of a list ends after 20 faulty entries", () => {
  const { list, looked } = counting(10_000);
  const checked = check(list, [...times(5, 1), ...times(5000, 100)]);
  expect("faults" in checked && checked.faults).toHaveLength(20);
  expect(checked).toMatchObject({
    faults: [{ path: [5], message: "must be less than 100" }, { path: [6] }, ...times(18, 0).map(() => ({}))],
  });
  expect(looked()).toBe(25);
});

test("a list with fewer faulty entries has all of its faults", () => {
  const { list, looked } = counting(10_000);
  const checked = check(list, [...times(500, 1), 100, ...times(500, 1), 100]);
  expect(checked).toMatchObject({ faults: [{ path: [500] }, { path: [1001] }] });
  expect(looked()).toBe(1002);
});

test("each entry of a list without faults is looked at once, and returned", () => {
  const { list, looked } = counting(10_000);
  const values = Array.from({ length: 5000 }, (_, index) => index % 100);
  expect(check(list, values)).toEqual({ value: values });
  expect(looked()).toBe(5000);
});

test("a list that is too long is refused before any entry is looked at, also with further bounds", () => {
  const { list, looked } = counting(100);
  expect(check(list.min(1), times(101, 1))).toMatchObject({
    faults: [{ path: [], message: "must have at most 100 entries" }],
  });
  expect(check(list.min(1), [])).toMatchObject({ faults: [{ message: "must have at least 1 entry" }] });
  expect(check(list, "text")).toMatchObject({ faults: [{ message: "must be a list" }] });
  expect(looked()).toBe(0);
});

test("a list in a union, and lists in lists, end as early", () => {
  const { list, looked } = counting(1000);
  const lists = z.union([z.string(), boundedList(list, 1000)]);
  const checked = check(
    lists,
    Array.from({ length: 1000 }, () => times(1000, 100)),
  );
  expect("faults" in checked && checked.faults).toHaveLength(400);
  expect(looked()).toBe(400);
});

test("openapi.yaml describes it like any other list", () => {
  expect(z.toJSONSchema(boundedList(z.string(), 3).min(1))).toEqual(
    z.toJSONSchema(z.array(z.string()).max(3).min(1)),
  );
});
