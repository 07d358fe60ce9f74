import { describe, expect, test } from "vitest";
import { workspace } from "../workspace.ts";
import { resultOf } from "./calling.ts";

describe("read_file", () => {
  const read = async (content: string | Uint8Array, args: Record<string, unknown> = {}) =>
    resultOf(await workspace({ f: content }), "read_file", { path: "f", ...args });
  const lines = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, index) => `line ${from + index}\n`).join("");

  test("gives a file as it is", async () => {
    for (const content of ["one\ntwo", "one\r\ntwo\r\n", "\ufeffünï 🧵\n", "\n", "a\0b"])
      expect(await read(content)).toEqual({ output: content, error: undefined });
    expect((await read("")).output).toBe("[The file is empty.]");
  });

  test("gives 2,000 lines at a time, and says how to read on", async () => {
    const content = lines(1, 4500);
    expect((await read(content)).output).toBe(
      `${lines(1, 2000)}\n[Lines 1 to 2000. Read on with offset 2001.]`,
    );
    expect((await read(content, { offset: 2001, limit: 10 })).output).toBe(
      `${lines(2001, 2010)}\n[Lines 2001 to 2010. Read on with offset 2011.]`,
    );
    expect((await read(content, { offset: 4001 })).output).toBe(lines(4001, 4500));
    expect((await read(content, { offset: 4491, limit: 10 })).output).toBe(lines(4491, 4500));
    expect((await read("a\nb", { offset: 2, limit: 1 })).output).toBe("b");
  });

  test("says how many lines there are when asked for one behind them", async () => {
    expect((await read("a\nb\n", { offset: 3 })).error).toBe("`f` has 2 lines; offset 3 is past its end.");
    expect((await read("a\nb", { offset: 9 })).error).toContain("has 2 lines");
    expect((await read("", { offset: 2 })).output).toBe("[The file is empty.]");
  });

  test("stops at a line end before it says too much", async () => {
    const { output } = await read(lines(1, 2000).replaceAll("line", "l".repeat(90)));
    expect(output.length).toBeLessThan(60_100);
    const [, last, next] = output.match(/\[Lines 1 to (\d+)\. Read on with offset (\d+)\.\]$/) ?? [];
    expect(Number(next)).toBe(Number(last) + 1);
    expect(output).toContain(` ${last}\n\n[Lines`);
  });

  test("cuts a line that is too long by itself", async () => {
    const { output } = await read(`${"🧵".repeat(50_000)}\nsecond\n`);
    expect(output).toMatch(/^(🧵){30000}\n\n\[Line 1 is cut here, after 60000 characters\./);
    expect(output).toContain("read on with offset 2");
  });

  test("gives what is not UTF-8 as base64, the beginning of it", async () => {
    const small = Uint8Array.from({ length: 256 }, (_, index) => index);
    expect((await read(small)).output).toBe(`base64:${Buffer.from(small).toString("base64")}`);
    const [body = "", notice] = (await read(Buffer.alloc(200_000, 0xff))).output.split("\n\n");
    expect(Buffer.from(body.slice("base64:".length), "base64").length).toBe(45_000);
    expect(notice).toBe("[The first 45000 of 200000 bytes.]");
    const late = Buffer.concat([Buffer.from("text\n".repeat(20_000)), Buffer.from([0xc3])]);
    expect((await read(late, { offset: 19_999 })).output).toMatch(/^base64:/);
  });

  test("takes file_path for path", async () => {
    const backend = await workspace({ f: "text" });
    expect(await resultOf(backend, "read_file", { file_path: "f" })).toEqual({
      output: "text",
      error: undefined,
    });
    expect((await resultOf(backend, "read_file", {})).error).toContain("path");
  });

  test("tells the model what is wrong, not where the server keeps it", async () => {
    const backend = await workspace({});
    expect((await resultOf(backend, "read_file", { path: "gone" })).error).toBe("`gone` does not exist.");
    expect((await resultOf(backend, "read_file", { path: "/etc/passwd" })).error).toContain(
      "outside of the workspace",
    );
    expect((await resultOf(backend, "read_file", { path: "f", offset: 0 })).error).toContain("offset");
  });
});
