import { expect, test } from "vitest";
import type { Message, ThreadState } from "../../src/client/client.ts";
import { differenceOf, fileCallOf, isReadable } from "../../src/page/file-calls.ts";
import { changedFiles, differencesOf, type FileChange } from "../../src/page/file-changes.ts";

const at = "2026-11-22T00:00:00.000Z";
const call = (id: string, name: string, args: Record<string, unknown>): Message => ({
  id: `m${id}`,
  created_at: at,
  role: "assistant",
  content: "",
  tool_calls: [{ id, name, args }],
});
const result = (id: string, error?: string): Message => ({
  id: `r${id}`,
  created_at: at,
  role: "tool",
  content: "",
  tool_call_id: id,
  name: "x",
  ...(error && { error }),
});
const state = (files: unknown, messages: Message[] = []): ThreadState => ({
  thread_id: "t",
  messages,
  files,
  status: "idle",
  version: 1,
});
const edit = (old_text: string, new_text: string) => ({ path: "a.txt", old_text, new_text });

test("the most recently changed file comes first, with its path in the workspace", () => {
  const files = {
    "/w/a.txt": { bytes: 1, sha256: "x", op: "write", content: "a" },
    "/w/b/c.txt": { bytes: 20_000, sha256: "y", op: "edit" },
  };
  expect(changedFiles(state(files), "/w")).toEqual([
    { path: "b/c.txt", op: "edit", bytes: 20_000, edits: [] },
    { path: "a.txt", op: "write", bytes: 1, content: "a", edits: [] },
  ]);
});

test("an edit that failed, or has not ended, counts as no change", () => {
  const messages = [
    ...[call("1", "edit_file", edit("a", "b")), result("1")],
    ...[call("2", "edit_file", edit("c", "d")), result("2", "is not in the file")],
    call("3", "edit_file", edit("e", "f")),
  ];
  const [change] = changedFiles(state({ "/w/a.txt": { bytes: 1, op: "edit" } }, messages), "/w");
  expect(change?.edits).toEqual([{ old_text: "a", new_text: "b" }]);
});

test("edits before the file was written as a whole do not count", () => {
  const messages = [
    ...[call("1", "edit_file", edit("a", "b")), result("1")],
    ...[call("2", "write_file", { path: "./a.txt", content: "new" }), result("2")],
    ...[call("3", "edit_file", { ...edit("new", "newer"), path: "/w/a.txt" }), result("3")],
  ];
  const [change] = changedFiles(state({ "/w/a.txt": { bytes: 1, op: "edit" } }, messages), "/w");
  expect(change?.edits).toEqual([{ old_text: "new", new_text: "newer" }]);
});

test("a state with another shape has no changes", () => {
  for (const files of [undefined, null, [], "x", { a: 1 }])
    expect(changedFiles(state(files), "/w")).toEqual([]);
});

const change = (given: Partial<FileChange>): FileChange => ({
  path: "a",
  op: "edit",
  bytes: 1,
  edits: [],
  ...given,
});
const edits = [
  { old_text: "1", new_text: "2" },
  { old_text: "2", new_text: "3" },
];

test("the last change is shown in its file, earlier edits by the text that they replaced", () => {
  expect(differencesOf(change({ edits, before: "a2", content: "a3" }))).toEqual([
    { before: "1", after: "2", isWhole: false },
    { before: "a2", after: "a3", isWhole: true },
  ]);
  expect(differencesOf(change({ op: "write", before: "old", content: "new" }))).toEqual([
    { before: "old", after: "new", isWhole: true },
  ]);
});

test("simultaneous edits are shown once", () => {
  const atOnce = [
    { old_text: "b", new_text: "B" },
    { old_text: "a", new_text: "A" },
  ];
  const before = { old_text: "z", new_text: "a" };
  const whole = { before: "ab", after: "AB", isWhole: true };
  expect(differencesOf(change({ edits: atOnce, before: "ab", content: "AB" }))).toEqual([whole]);
  expect(differencesOf(change({ edits: [before, ...atOnce], before: "ab", content: "AB" }))).toEqual([
    { before: "z", after: "a", isWhole: false },
    whole,
  ]);
});

test("for a file that is too large, the replaced text of its edits is shown", () => {
  expect(differencesOf(change({ edits })).map(({ after }) => after)).toEqual(["2", "3"]);
  expect(differencesOf(change({ op: "write" }))).toEqual([]);
});

test("text written over a file that is not kept is shown as new", () => {
  expect(differencesOf(change({ op: "write", content: "x" }))).toEqual([
    { before: "", after: "x", isWhole: true },
  ]);
});

test("a call is shown as a difference only if that shows all of it", () => {
  const write = { path: "a", content: "b" };
  expect(fileCallOf("write_file", write)).toEqual({ path: "a", change: { content: "b" } });
  expect(fileCallOf("write_file", { ...write, mode: "0777" })).toBeUndefined();
  expect(fileCallOf("save", write)).toBeUndefined();
  const edit = fileCallOf("edit_file", { path: "a", old_text: "x", new_text: "y" });
  if (!edit) throw new Error("It is an edit.");
  expect(differenceOf(edit, { text: "1x2x" })).toMatchObject({ after: "1y2x", isWhole: true, isFound: true });
  expect(differenceOf(edit, { text: "none" })).toMatchObject({ before: "x", after: "y", isFound: false });
  const whole = { before: "", after: "line\n".repeat(3000), isWhole: true };
  expect(isReadable(whole)).toBe(false);
});
