import { expect, test } from "vitest";
import type { FileEntry } from "../../src/client/client.ts";
import { folderOf, joined, nameOf, shownIn, sizeOf, tidied, withinWorkspace } from "../../src/page/tree.ts";

const entry = (path: string, type: FileEntry["type"] = "file"): FileEntry => ({
  name: nameOf(path),
  path,
  type,
  size: 1,
  modified_at: "2026-11-22T00:00:00.000Z",
});

test("folders come first, then files, both by name", () => {
  const entries = [entry("/w/b"), entry("/w/z", "directory"), entry("/w/a"), entry("/w/c", "directory")];
  expect(shownIn(entries).shown.map(({ path }) => path)).toEqual(["/w/c", "/w/z", "/w/a", "/w/b"]);
});

test("a very large folder is shown in part, with the number of missing entries", () => {
  const { shown, more } = shownIn(Array.from({ length: 1234 }, (_, index) => entry(`/w/${index}`)));
  expect(shown.length + more).toBe(1234);
  expect(more).toBe(734);
});

test("a path can be split and joined", () => {
  expect(nameOf("a/b/c.txt")).toBe("c.txt");
  expect(nameOf("c.txt")).toBe("c.txt");
  expect(folderOf("a/b/c.txt")).toBe("a/b");
  expect(folderOf("c.txt")).toBe("");
  expect(joined("", "c.txt")).toBe("c.txt");
  expect(joined("a/b", "c.txt")).toBe("a/b/c.txt");
});

test("a typed path can have any slashes", () => {
  expect(tidied(" /notes//today.md ")).toBe("notes/today.md");
  expect(tidied("./a/./b/")).toBe("a/b");
  expect(tidied("/")).toBe("");
});

test("a file's path starts at its workspace", () => {
  expect(withinWorkspace("/workspace", "/workspace/a/b.txt")).toBe("a/b.txt");
  expect(withinWorkspace("/workspace", "./a/b.txt")).toBe("a/b.txt");
  expect(withinWorkspace("/workspace", "/workspaces/a")).toBe("/workspaces/a");
});

test("a size has a suitable unit", () => {
  expect([0, 1, 512, 1024, 1536, 300_000, 5_000_000, 7e12].map(sizeOf)).toEqual([
    ...["0 bytes", "1 byte", "512 bytes", "1.0 KB", "1.5 KB", "293 KB", "4.8 MB", "6,519 GB"],
  ]);
});
