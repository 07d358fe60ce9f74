import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Message } from "../../src/agent/core/message.ts";
import { RunRecord } from "../../src/agent/core/records.ts";
import { fitted } from "../../src/lib/fitted.ts";
import { seedOr } from "../support/seed.ts";

const Page = z.object({ items: z.array(Message), runs: z.array(RunRecord) });

const usage = { input_tokens: 1, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 };
const stamp = { id: "m1", created_at: "2026-01-01T00:00:00.000Z" };
const call = { id: "c1", name: "read", args: {} };
const assistant = { ...stamp, role: "assistant", content: "hi", tool_calls: [call], usage };
const run = {
  ...{ id: "r1", thread_id: "t1", agent: "a", status: "success", attempt: 1, usage, metadata: { a: 1 } },
  created_at: stamp.created_at,
};

const only = (value: unknown) => fitted(z.array(Message), [value]).value[0];

describe("data that does not match its schema", () => {
  test("is returned unchanged if it matches, without unknown keys", () => {
    expect(fitted(Message, { ...assistant, secret: "x" })).toEqual({ value: assistant, changed: [] });
  });

  test("gets the nearest valid number", () => {
    const odd = { input_tokens: 1.5, output_tokens: Number.NaN, cache_read_tokens: 1e300, other: 1 };
    const { value, changed } = fitted(Message, { ...assistant, usage: odd });
    expect(value).toMatchObject({
      usage: {
        ...{ input_tokens: 2, output_tokens: 0, cache_write_tokens: 0 },
        cache_read_tokens: Number.MAX_SAFE_INTEGER,
      },
    });
    expect(changed).toContain("usage.input_tokens");
  });

  test("gets texts where numbers replace texts", () => {
    expect(only({ ...assistant, tool_calls: [{ ...call, id: 7, name: 8 }] })).toMatchObject({
      tool_calls: [{ id: "7", name: "8" }],
    });
    expect(only({ ...assistant, content: 5 })).toMatchObject({ content: "5" });
    expect(only({ ...stamp, role: "user", content: 5 })).toMatchObject({ content: "5" });
  });

  test("loses only an optional value that cannot be kept", () => {
    const { tool_calls: _, ...rest } = assistant;
    expect(only({ ...assistant, tool_calls: null, model: null })).toEqual(rest);
  });

  test("loses only a list entry that cannot be kept", () => {
    const good = [assistant, { ...stamp, id: "m2", role: "user", content: "hi" }];
    const bad = [{ ...stamp, role: "stranger", content: "?" }, null, { ...assistant, created_at: "once" }];
    expect(fitted(z.array(Message), [bad[0], good[0], bad[1], good[1], bad[2]]).value).toEqual(good);
  });

  test("is not changed itself", () => {
    const odd = { ...assistant, usage: { ...usage, input_tokens: 1.5 } };
    fitted(Message, odd);
    expect(odd.usage.input_tokens).toBe(1.5);
  });

  test("is never refused, for any JSON in place of one value of a page", () => {
    const page = { items: [assistant, { ...stamp, id: "m2", role: "user", content: "hi" }], runs: [run] };
    const places = pathsIn(page);
    const anything = fc.oneof(fc.jsonValue(), fc.anything({ withBigInt: false }).map(asStored));
    const spoiling = fc.array(fc.tuple(fc.constantFrom(...places), anything), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(spoiling, (changes) => {
        const odd = structuredClone(page);
        for (const [path, value] of changes) put(odd, path, value);
        const { value } = fitted(Page, odd);
        expect(Page.safeParse(JSON.parse(JSON.stringify(value))).error).toBeUndefined();
      }),
      { seed: seedOr(3), numRuns: 2_000 },
    );
  });
});

/** What a store gives back of it. */
const asStored = (value: unknown): unknown => JSON.parse(JSON.stringify(value) ?? "null");

function pathsIn(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [path];
  const below = Object.entries(value).flatMap(([key, each]) => pathsIn(each, [...path, key]));
  return path.length > 0 ? [path, ...below] : below;
}

function put(root: unknown, path: readonly string[], value: unknown): void {
  let place = root as Record<string, unknown>;
  for (const key of path.slice(0, -1)) {
    const next = place[key];
    if (typeof next !== "object" || next === null) return;
    place = next as Record<string, unknown>;
  }
  place[path.at(-1) ?? ""] = value;
}
