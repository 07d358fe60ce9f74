import { describe, expect, test } from "vitest";
import { sseParser } from "../../src/lib/sse-parser.ts";

/** The events of `text` when it comes in pieces of so many bytes. */
function parse(text: string, size = Number.POSITIVE_INFINITY): [event: string, data: string][] {
  const events: [string, string][] = [];
  const parser = sseParser((data, event) => events.push([event, data]));
  const bytes = Buffer.from(text);
  for (let start = 0; start < bytes.length; start += size) parser.push(bytes.subarray(start, start + size));
  return events;
}

describe("server-sent events", () => {
  test("are parsed in any pieces", () => {
    const text =
      'event: a\r\ndata: {"x": "žluťoučký 🐎"}\r\n\r\n: hello\n\ndata: one\ndata: two\nid: 7\n\ndata:漢字\n\n';
    const events = [
      ["a", '{"x": "žluťoučký 🐎"}'],
      ["", "one\ntwo"],
      ["", "漢字"],
    ];
    for (let size = 1; size <= text.length * 4; size++) expect(parse(text, size)).toEqual(events);
  });

  test("keep all but the first space of their data", () => {
    expect(parse("data:  two blanks\n\ndata:none\n\ndata\n\n")).toEqual([
      ["", " two blanks"],
      ["", "none"],
      ["", ""],
    ]);
  });

  test("without data are ignored, and their name is dropped", () => {
    expect(parse("event: ping\n\ndata: x\n\n")).toEqual([["", "x"]]);
  });

  test("ignore unknown fields, comments and a byte order mark", () => {
    expect(parse("\uFEFFdata: x\ndatabase: y\nevents: z\nretry: 5\n:c\nnonsense\n\n")).toEqual([["", "x"]]);
  });

  test("pass on lines that are not fields, if requested", () => {
    const others: string[] = [];
    const parser = sseParser(() => {}, { onOther: (line) => others.push(line) });
    parser.push(Buffer.from(': c\ndata: x\nerror: {"code": 500}\n\n{"bare": 1}\nid: 7\n'));
    expect(others).toEqual(['error: {"code": 500}', '{"bare": 1}']);
  });

  test("that never ended are left out", () => {
    expect(parse("data: whole\n\ndata: half")).toEqual([["", "whole"]]);
    expect(parse("data: whole\n\ndata: half\n")).toEqual([["", "whole"]]);
  });

  test.each([
    ["a line", `data: ${"x".repeat(200)}`],
    ["a line that comes to its end", `data: ${"x".repeat(200)}\n\n`],
    ["many lines", "data: x\n".repeat(200)],
  ])("cannot be endless: %s", (_, text) => {
    const parser = sseParser(() => {}, { maxLength: 100 });
    const bytes = Buffer.from(text);
    expect(() => {
      for (let start = 0; start < bytes.length; start += 10) parser.push(bytes.subarray(start, start + 10));
    }).toThrow("longer than 100 characters");
  });

  test("of the maximum length can follow each other", () => {
    const events: string[] = [];
    const parser = sseParser((data) => events.push(data), { maxLength: 100 });
    const longest = "x".repeat(99);
    for (const _ of [1, 2, 3]) parser.push(Buffer.from(`data: ${longest}\n\n`));
    expect(events).toEqual([longest, longest, longest]);
  });

  // Work that grew with the square of the length would run into the time limit of the test.
  test("can arrive in any number of small pieces", () => {
    const lengths: number[] = [];
    const parser = sseParser((data) => lengths.push(data.length));
    const piece = Buffer.from("x".repeat(64));
    parser.push(Buffer.from("data: "));
    for (let count = 0; count < 50_000; count++) parser.push(piece);
    parser.push(Buffer.from("\n\n"));
    expect(lengths).toEqual([50_000 * 64]);
  });
});
