import { describe, expect, test } from "vitest";
import { SentinelReader } from "../../../src/backends/shell/session.ts";

describe("a mark", () => {
  const word = "M4rkM4rkM4rkM4rkM4rk22";
  const noise = `a\x1eb\x1e${word}\x1e\x1e${word.slice(0, 9)}\n${word} \x1e`;
  const stream = Buffer.from(
    `${noise}\x1e${word} first 1\n${noise}é\x1e${word} \n\x1e${word} last\n${noise}`,
  );

  function read(pieces: readonly Buffer[]): { output: string; words: string[] } {
    const found = { output: "", words: [] as string[] };
    const reader = new SentinelReader(word, {
      onOutput: (bytes) => {
        found.output += bytes.toString("latin1");
      },
      onMark: (words) => found.words.push(words),
    });
    for (const piece of pieces) reader.feed(piece);
    return found;
  }

  const output = Buffer.from(`${noise}${noise}é${noise}`).toString("latin1");
  const expected = { output: output.slice(0, -1), words: ["first 1", "", "last"] };

  test("is found wherever the stream is cut, and nothing else is taken for one", () => {
    for (let at = 0; at <= stream.length; at++)
      for (let to = at; to <= stream.length; to += 29)
        expect(read([stream.subarray(0, at), stream.subarray(at, to), stream.subarray(to)])).toEqual(
          expected,
        );
    expect(read(Array.from(stream, (byte) => Buffer.from([byte])))).toEqual(expected);
  });

  test("holds back nothing but its own beginning", () => {
    expect(read([Buffer.from("one\n")]).output).toBe("one\n");
    expect(read([Buffer.from(`one\x1e${word}`)]).output).toBe("one");
    expect(read([Buffer.from(`one\x1e${word}`), Buffer.from("x")]).output).toBe(`one\x1e${word}x`);
  });

  test("without an end is refused", () => {
    expect(() => read([Buffer.from(`\x1e${word} `), Buffer.alloc(20_000, 65)])).toThrow("without an end");
  });
});
