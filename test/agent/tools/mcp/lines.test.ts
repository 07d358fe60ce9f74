import { Readable } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import { linesOf } from "../../../../src/agent/tools/mcp/stdio.ts";

async function linesIn(text: string, size: number, maxBytes: number): Promise<string[]> {
  const bytes = Buffer.from(text);
  const count = Math.ceil(bytes.length / size);
  const chunks = Array.from({ length: count }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
  const lines: string[] = [];
  for await (const line of linesOf(Readable.from(chunks), maxBytes)) lines.push(line);
  return lines;
}

test("a server's lines are complete and have no endings, in chunks of any size", async () => {
  const line = fc.string({ unit: "grapheme" }).filter((each) => !each.includes("\n"));
  await fc.assert(
    fc.asyncProperty(fc.array(line), fc.integer({ min: 1, max: 9 }), async (lines, size) => {
      const text = lines.map((each) => `${each}\n`).join("");
      expect(await linesIn(`${text}unfinished`, size, 10_000)).toEqual(lines);
    }),
  );
});

test("a line may have the maximum length, but not one byte more", async () => {
  for (const size of [1, 3, 100]) {
    expect(await linesIn("é1234\n", size, 6)).toEqual(["é1234"]);
    await expect(linesIn("é12345\n", size, 6)).rejects.toThrow();
  }
});
