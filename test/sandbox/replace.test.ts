import { expect, onTestFinished, test } from "vitest";
import { replaceFirst } from "../../src/sandbox/replace.ts";

test("other work continues while a large file is searched", async () => {
  const seen: string[] = [];
  const other = setImmediate(() => void seen.push("other work"));
  onTestFinished(() => clearImmediate(other));
  expect(await replaceFirst(Buffer.alloc(3_000_000, "a"), "b", "c")).toBeUndefined();
  expect(seen).toEqual(["other work"]);
});
