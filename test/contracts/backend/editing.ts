// What every backend promises of edits.

import { expect, test } from "vitest";
import { execute, readAll, refuses } from "../../support/backend.ts";
import type { It } from "./it.ts";

const { signal } = new AbortController();

export function editing(it: It): void {
  const put = (text: string) => it().write("edited", Buffer.from(text), signal);
  const text = async () => String(await readAll(it(), "edited"));

  test("replaces the first exact occurrence only", async () => {
    await put("one two two $& three");
    await it().edit("edited", "two", "$1$&", signal);
    expect(await text()).toBe("one $1$& two $& three");
  });

  test("says when the text is not there, and changes nothing", async () => {
    await put("one\r\ntwo\r\n");
    const edit = (old: string) => it().edit("edited", old, "x", signal);
    await refuses(() => edit("three"), "invalid_request", "old_text not found in file");
    await refuses(() => edit("ONE"), "invalid_request", "old_text not found in file");
    await refuses(() => edit("one\ntwo"), "invalid_request", "\\r\\n");
    await refuses(() => edit(""), "invalid_request", "old_text is empty");
    await refuses(() => it().edit("nowhere", "a", "b", signal), "not_found", "`nowhere`");
    expect(await text()).toBe("one\r\ntwo\r\n");
    await it().edit("edited", "one\r\ntwo", "three", signal);
    expect(await text()).toBe("three\r\n");
  });

  test("leaves every other byte as it is, in any encoding", async () => {
    await it().write("edited", Buffer.from([0xff, 0x00, 0x61, 0xe9, 0x0d, 0x0a]), signal);
    await it().edit("edited", "a", "é", signal);
    expect([...(await readAll(it(), "edited"))]).toEqual([0xff, 0x00, 0xc3, 0xa9, 0xe9, 0x0d, 0x0a]);
  });

  test("loses none of the edits that are made at once", async () => {
    const count = 25;
    await put(Array.from({ length: count }, (_, index) => `<${index}>`).join("\n"));
    await Promise.all(
      Array.from({ length: count }, (_, index) => it().edit("edited", `<${index}>`, "ok", signal)),
    );
    expect(await text()).toBe(Array(count).fill("ok").join("\n"));
  });

  test("refuses a file too large to hold", async () => {
    await execute(it(), "dd if=/dev/zero of=huge bs=1048576 count=0 seek=11 2>&1");
    await refuses(() => it().edit("huge", "a", "b", signal), "payload_too_large", "10485760");
    await it().remove("huge", signal);
  });
}
