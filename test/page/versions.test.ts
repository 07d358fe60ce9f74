import { expect, test } from "vitest";
import { versionsOf } from "../../src/page/versions.ts";

const messages = (ids: string) =>
  [...ids].map((id) => ({ id, created_at: new Date(id.charCodeAt(0)).toISOString() }));
const shown = (ours: string, ...branches: string[]) =>
  versionsOf(
    messages(ours),
    branches.map((ids) => ({ branch: ids, messages: messages(ids) })),
  ).map(({ ids, versions }) => [
    ids.join(""),
    ...versions.map(({ branch, first }) => branch ?? `(${first})`),
  ]);

test("the versions of a message are where a conversation and its branches diverge, oldest first", () => {
  expect(shown("abef", "abcd")).toEqual([["ef", "abcd", "(e)"]]);
  expect(shown("abcd", "abef", "abgh")).toEqual([["cd", "(c)", "abef", "abgh"]]);
});

test("branches that are identical after they diverge are one version, the newest of them", () => {
  expect(shown("xy", "abef", "abcd")).toEqual([["xy", "abef", "(x)"]]);
  expect(shown("abef", "xy", "abcd")).toEqual([
    ["abef", "(a)", "xy"],
    ["ef", "abcd", "(e)"],
  ]);
});

test("a branch without differences, or with only additional messages, has no version", () => {
  expect(shown("ab", "a", "abc", "ab")).toEqual([]);
});
