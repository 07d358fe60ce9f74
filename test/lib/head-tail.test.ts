import { expect, test } from "vitest";
import { headTail } from "../../src/lib/text.ts";

const GAP = /\n\n\.\.\. \((\d+) characters left out\) \.\.\.\n\n/;

test("keeps a text that fits, in any pieces", () => {
  for (const pieces of [
    [],
    [""],
    ["abc"],
    ["ab", "cdef"],
    ["a", "b", "c", "d", "e", "f", "g", "h"],
    ["abcdefgh"],
  ]) {
    const kept = headTail(4);
    for (const piece of pieces) kept.push(piece);
    expect(kept.read()).toEqual({ text: pieces.join(""), omitted: 0 });
  }
});

test("keeps the ends of a longer one and counts the missing part", () => {
  for (const size of [1, 2, 3, 7, 100, 1000]) {
    const text = Array.from({ length: 1000 }, (_, index) => String.fromCharCode(97 + (index % 26))).join("");
    const kept = headTail(10);
    for (let at = 0; at < text.length; at += size) kept.push(text.slice(at, at + size));
    const { text: shown, omitted } = kept.read();
    expect(shown.split(GAP)).toEqual([text.slice(0, 10), "980", text.slice(-10)]);
    expect(omitted).toBe(980);
  }
});

test("does not split a character", () => {
  for (let lead = 0; lead < 4; lead++) {
    const text = `${"x".repeat(lead)}${"🧵".repeat(50)}`;
    const kept = headTail(11);
    for (const character of text) kept.push(character);
    const { text: shown, omitted } = kept.read();
    const [head = "", , tail = ""] = shown.split(GAP);
    expect(shown.isWellFormed()).toBe(true);
    expect(text.startsWith(head) && text.endsWith(tail)).toBe(true);
    expect(head.length + omitted + tail.length).toBe(text.length);
  }
});
