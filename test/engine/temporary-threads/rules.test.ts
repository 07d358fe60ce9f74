import { expect, test } from "vitest";
import { AppError } from "../../../src/agent/core/errors.ts";
import { ownThread } from "../../../src/engine/temporary-threads/own-thread.ts";
import {
  keyedThreadId,
  nextStep,
  QUESTIONS_MS,
  type TemporaryThread,
} from "../../../src/engine/temporary-threads/rules.ts";
import { Id } from "../../../src/protocol/ids.ts";

const NOW = Date.parse("2026-11-28T12:00:00Z");
const MINUTE = 60_000;
const KEEP = 5 * MINUTE;
const temporary: TemporaryThread = { since: NOW - MINUTE, is_keyed: false, state: "live" };
const endedAt = (ms: number) => ({ ended_at: new Date(ms).toISOString() });
const step = (status: Parameters<typeof nextStep>[0]["status"], ended?: number, since = temporary.since) =>
  nextStep(
    { temporary: { ...temporary, since }, status, newest: ended === undefined ? {} : endedAt(ended) },
    KEEP,
    NOW,
  );

test("a thread is deleted once its readers have had their time after its last run", () => {
  expect(step("idle", NOW - KEEP)).toEqual({ as: "delete" });
  expect(step("error", NOW - KEEP)).toEqual({ as: "delete" });
  expect(step("idle", NOW - KEEP + 1)).toEqual({ as: "wait", until: NOW + 1 });
});

test("an active thread, or one with questions, is checked again, more often if it is kept for a short time", () => {
  expect(step("busy")).toEqual({ as: "wait", until: NOW + 30_000 });
  expect(step("interrupted", NOW - KEEP)).toEqual({ as: "wait", until: NOW + KEEP });
  expect(nextStep({ temporary, status: "busy", newest: {} }, 10, NOW)).toEqual({
    as: "wait",
    until: NOW + 1_000,
  });
});

test("open questions wait for at most a day", () => {
  expect(step("interrupted", NOW - QUESTIONS_MS + 1)).toEqual({ as: "wait", until: NOW + 1 });
  expect(step("interrupted", NOW - QUESTIONS_MS)).toEqual({ as: "delete" });
});

test("a future end, by another clock, keeps a thread no longer than one that ends now", () => {
  expect(step("idle", NOW + 365 * 24 * 60 * MINUTE)).toEqual({ as: "wait", until: NOW + KEEP });
});

test("a thread that does not exist yet is checked once more and then dropped", () => {
  expect(step(undefined)).toEqual({ as: "wait", until: NOW + 9 * MINUTE });
  expect(step(undefined, undefined, NOW - 10 * MINUTE)).toEqual({ as: "forget" });
});

test("a key has its own thread, and a different one for kept runs", () => {
  const ids = ["a", "b"].flatMap((key) => [keyedThreadId(key, true), keyedThreadId(key, false)]);
  expect(new Set(ids).size).toBe(4);
  expect(keyedThreadId("a", true)).toBe(ids[0]);
  for (const id of ids) expect(Id.safeParse(id).success).toBe(true);
});

test("a refused run withdraws its thread, unless another request with its key may still be accepted", async () => {
  const withdrawn: string[] = [];
  const threads = {
    async announce() {},
    withdraw: async (_owner: object, id: string) => void withdrawn.push(id),
    async wasRead() {},
  };
  const refusing = async (key: string | undefined, code: "limit_exceeded" | "unavailable") => {
    const own = ownThread(threads, { tenant: "acme", user: "ada" }, { key, isKept: false });
    const accept = () => Promise.reject(new AppError(code, "No."));
    await expect(own.begin(accept)).rejects.toMatchObject({ code });
    return own.thread_id;
  };
  await refusing("k1", "limit_exceeded");
  // It may have been accepted.
  await refusing(undefined, "unavailable");
  expect(withdrawn).toEqual([await refusing(undefined, "limit_exceeded")]);
});
