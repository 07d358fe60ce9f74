// What every backend promises of edits.

import { expect, test } from "vitest";
import { toUtf16 } from "../../../src/lib/utf16.ts";
import { execute, readAll, refuses } from "../../support/backend.ts";
import type { It } from "./it.ts";

const { signal } = new AbortController();

export function editing(it: It): void {
  const put = (text: string) => it().write("edited", Buffer.from(text), signal);
  const text = async () => String(await readAll(it(), "edited"));

  test("replaces only the first exact occurrence", async () => {
    await put("one two two $& three");
    await it().edit("edited", "two", "$1$&", signal);
    expect(await text()).toBe("one $1$& two $& three");
  });

  test("reports a missing text and changes nothing", async () => {
    await put("one\r\ntwo\r\n");
    const edit = (old: string) => it().edit("edited", old, "x", signal);
    await refuses(() => edit("three"), "invalid_request", "old_text not found in file");
    await refuses(() => edit("ONE"), "invalid_request", "old_text not found in file");
    await refuses(() => edit(""), "invalid_request", "old_text is empty");
    await refuses(() => it().edit("nowhere", "a", "b", signal), "not_found", "`nowhere`");
    expect(await text()).toBe("one\r\ntwo\r\n");
  });

  test.each([
    ["over lines that end in \\r\\n", "a\r\nb\r\nc\r\n", "a\nb", "a\nB", "a\r\nB\r\nc\r\n"],
    ["that adds lines in between", "a\r\nb\r\nc\r\n", "b", "b\nb2", "a\r\nb\r\nb2\r\nc\r\n"],
    ["that adds lines at the end", "a\r\nb", "b", "b\nc\n", "a\r\nb\r\nc\r\n"],
    ["that begins and ends with a line end", "a\r\nb\r\nc", "\nb\n", "\n", "a\r\nc"],
    ["with both kinds in the new text", "a\r\nb\r\n", "a\nb", "1\r\n2\n3", "1\r\n2\r\n3\r\n"],
    ["over mixed line ends", "a\r\nb\nc\r\n", "a\nb\nc", "a\nc", "a\r\nc\r\n"],
    ["in the part that ends in \\n", "a\r\nb\nc\nd\r\n", "b\nc", "b\nx", "a\r\nb\nx\nd\r\n"],
    ["written with \\r\\n where lines end in \\n", "a\nb\nc\n", "a\r\nb", "a\r\nB", "a\nB\nc\n"],
    ["that asks for \\r\\n in so many characters", "a\nb\n", "a\nb", "a\r\nb", "a\r\nb\n"],
    ["of an exact place behind one that differs", "a\r\nb a\nb", "a\nb", "x", "a\r\nb x"],
  ])("keeps the file's line endings in an edit %s", async (_, before, old, fresh, after) => {
    await put(before);
    await it().edit("edited", old, fresh, signal);
    expect(await text()).toBe(after);
  });

  test.each(["utf-16le", "utf-16be"] as const)("edits a file in %s with a byte order mark", async (order) => {
    const bytes = (text: string) => toUtf16(`\ufeff${text}`, order);
    await it().write("edited", bytes("žluť\r\nkůň\r\n"), signal);
    await it().edit("edited", "žluť\nkůň", "kůň\n🐎", signal);
    expect(await readAll(it(), "edited")).toEqual(bytes("kůň\r\n🐎\r\n"));
  });

  test("does not change any other byte, in any encoding", async () => {
    await it().write("edited", Buffer.from([0xff, 0x00, 0x61, 0xe9, 0x0d, 0x0a]), signal);
    await it().edit("edited", "a", "é", signal);
    expect([...(await readAll(it(), "edited"))]).toEqual([0xff, 0x00, 0xc3, 0xa9, 0xe9, 0x0d, 0x0a]);
  });

  test("loses no simultaneous edit", async () => {
    const count = 25;
    await put(Array.from({ length: count }, (_, index) => `<${index}>`).join("\n"));
    await Promise.all(
      Array.from({ length: count }, (_, index) => it().edit("edited", `<${index}>`, "ok", signal)),
    );
    expect(await text()).toBe(Array(count).fill("ok").join("\n"));
  });

  test("refuses a file that is too large", async () => {
    await execute(it(), "dd if=/dev/zero of=huge bs=1048576 count=0 seek=11 2>&1");
    await refuses(() => it().edit("huge", "a", "b", signal), "payload_too_large", "10485760");
    await it().remove("huge", signal);
  });
}
