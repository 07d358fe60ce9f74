import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { AppError } from "../../../src/agent/core/errors.ts";
import { limitReads } from "../../../src/engine/stores/shared/read-limit.ts";

const DEADLINE_MS = 60_000;

/** Reads that end when `ends` says so. `begun` names those that were let in, in order. */
function reads(atOnce: number) {
  const inTurn = limitReads(atOnce);
  const begun: string[] = [];
  const ends: PromiseWithResolvers<void>[] = [];
  const read = (tenant: string, name: string, ms = DEADLINE_MS) => {
    const reading = inTurn(tenant, ms, () => {
      begun.push(name);
      const end = Promise.withResolvers<void>();
      ends.push(end);
      return end.promise;
    });
    // Those that a test leaves waiting are given up later.
    reading.catch(() => {});
    return reading;
  };
  return { begun, ends, read };
}

test("a tenant that requests one page gets it before another tenant's hundredth", async () => {
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

test("a failed read, even because the store does not respond, ends no other and lets the next one start", async () => {
  const { begun, ends, read } = reads(1);
  const failing = expect(read("ada", "first")).rejects.toThrow("odd");
  const away = expect(read("ada", "second")).rejects.toMatchObject({ code: "unavailable" });
  const third = read("grace", "third");
  ends[0]?.reject(new Error("odd"));
  await failing;
  ends[1]?.reject(new AppError("unavailable", "away"));
  await away;
  expect(begun).toEqual(["first", "second", "third"]);
  ends[2]?.resolve();
  await third;
});

test.each(["ada", "grace"])(
  "a read that does not get its turn in time gets `unavailable`, and its turn goes to the next, of %s",
  async (tenant) => {
    const { begun, ends, read } = reads(1);
    void read("ada", "first");
    const late = read("ada", "late", 1);
    const patient = read(tenant, "patient");
    await expect(late).rejects.toMatchObject({ code: "unavailable" });
    ends[0]?.resolve();
    await turn();
    expect(begun).toEqual(["first", "patient"]);
    ends[1]?.resolve();
    await patient;
  },
);
