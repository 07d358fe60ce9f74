import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { AppError } from "../../src/core/errors.ts";
import { createTurns } from "../../src/stores/shared/turns.ts";

/** Reads that end when `ends` says so. `begun` names those that were let in, in order. */
function reads(atOnce: number) {
  const inTurn = createTurns(atOnce);
  const begun: string[] = [];
  const ends: PromiseWithResolvers<void>[] = [];
  const read = (tenant: string, name: string) =>
    inTurn(tenant, () => {
      begun.push(name);
      const end = Promise.withResolvers<void>();
      ends.push(end);
      return end.promise;
    });
  return { begun, ends, read };
}

test("a tenant that asks for one page gets it before the hundredth of another", async () => {
  const { begun, ends, read } = reads(2);
  for (let page = 1; page <= 100; page++) void read("ada", `ada ${page}`);
  void read("grace", "grace 1");
  void read("grace", "grace 2");
  expect(begun).toEqual(["ada 1", "ada 2"]);
  for (let ended = 0; ended < 4; ended++) {
    ends[ended]?.resolve();
    await turn();
  }
  expect(begun).toEqual(["ada 1", "ada 2", "ada 3", "grace 1", "ada 4", "grace 2"]);
});

test("a read that fails lets the next one in, and when the store is away all who wait get `unavailable` at once", async () => {
  const { begun, ends, read } = reads(1);
  const failing = expect(read("ada", "first")).rejects.toThrow("odd");
  const away = expect(read("ada", "second")).rejects.toMatchObject({ code: "unavailable" });
  const waiting = ["ada", "grace"].map((name) =>
    expect(read(name, "third")).rejects.toMatchObject({ code: "unavailable" }),
  );
  ends[0]?.reject(new Error("odd"));
  await failing;
  expect(begun).toEqual(["first", "second"]);
  ends[1]?.reject(new AppError("unavailable", "away"));
  await Promise.all([away, ...waiting]);
  expect(begun).toEqual(["first", "second"]);
  void read("ada", "later");
  expect(begun).toEqual(["first", "second", "later"]);
});
