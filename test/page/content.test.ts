import { expect, test } from "vitest";
import { contentOf, fromField, toField } from "../../src/page/content.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const latin = (text: string) => Uint8Array.from(text, (char) => char.charCodeAt(0));

test("an image is recognised by its first bytes, not by its name", () => {
  expect(contentOf(latin("\x89PNG\r\n\x1a\nrest"), true)).toEqual({ kind: "image", type: "image/png" });
  expect(contentOf(latin("\xff\xd8\xff\xe0"), true)).toEqual({ kind: "image", type: "image/jpeg" });
  expect(contentOf(latin("GIF89a"), true)).toEqual({ kind: "image", type: "image/gif" });
  expect(contentOf(latin("RIFF\x01\x02\n\x04WEBPVP8 "), true)).toEqual({ kind: "image", type: "image/webp" });
});

test("SVG and HTML are shown as text", () => {
  for (const text of ['<svg onload="alert(1)"/>', "<script>alert(1)</script>"])
    expect(contentOf(bytes(text), true)).toEqual({ kind: "text", text, lineEnd: "\n" });
});

test("other data is not shown as text", () => {
  expect(contentOf(latin("\x7fELF\0\0"), true)).toEqual({ kind: "bytes" });
  expect(contentOf(latin("caf\xe9"), true)).toEqual({ kind: "bytes" });
});

test("the beginning of a text can end within a character", () => {
  const cut = bytes("né").subarray(0, 2);
  expect(contentOf(cut, false)).toEqual({ kind: "text", text: "n", lineEnd: "\n" });
  expect(contentOf(cut, true)).toEqual({ kind: "bytes" });
});

test("a text field returns every byte of the text that it can show", () => {
  for (const text of ["", "a", "a\nb\n", "a\r\nb\r\n", "\ufeffa\n"]) {
    const content = contentOf(bytes(text), true);
    if (content.kind !== "text" || !content.lineEnd)
      throw new Error(`${JSON.stringify(text)} is not editable.`);
    expect(bytes(fromField(toField(content.text), content.lineEnd))).toEqual(bytes(text));
  }
});

test("a text with mixed line endings is not editable, because a text field would change them", () => {
  for (const text of ["a\r\nb\n", "a\rb", "\nb\r\n"])
    expect(contentOf(bytes(text), true)).toEqual({ kind: "text", text });
});
