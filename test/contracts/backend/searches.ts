// What every backend promises of searches.

import { relative } from "node:path/posix";
import { beforeAll, describe, expect, test } from "vitest";
import { toUtf16 } from "../../../src/lib/utf16.ts";
import { execute, refuses } from "../../support/backend.ts";
import type { It } from "./it.ts";

const { signal } = new AbortController();

export function searches(it: It): void {
  describe("searches", () => {
    globbing(it);
    grepping(it);
  });
}

function globbing(it: It): void {
  const paths = [
    "a.ts",
    "b.js",
    ".env",
    "src/a.ts",
    "src/b.tsx",
    "src/deep/er/a.ts",
    "src/[x].ts",
    "test/a.ts",
    "app/[slug]/page.vue",
    "app/[[...all]]/page.vue",
  ];
  const skipped = ["node_modules/p/a.ts", ".git/a.ts", "src/__pycache__/a.ts", ".venv/a.ts"];
  beforeAll(async () => {
    for (const path of [...paths, ...skipped]) await it().write(`tree/${path}`, Buffer.from("x"), signal);
    await execute(it(), "cd tree && ln -s src linked && ln -s a.ts link.ts");
  });

  test.each([
    ["*.ts", ["a.ts", "src/[x].ts", "src/a.ts", "src/deep/er/a.ts", "test/a.ts"]],
    ["./*.ts", ["a.ts"]],
    ["src/*.ts", ["src/[x].ts", "src/a.ts"]],
    ["src/**", ["src/[x].ts", "src/a.ts", "src/b.tsx", "src/deep/er/a.ts"]],
    ["[x].ts", ["src/[x].ts"]],
    ["app/[slug]/**", ["app/[slug]/page.vue"]],
    ["app/[[...all]]/*.vu[ex]", ["app/[[...all]]/page.vue"]],
    [".env", [".env"]],
    ["A.TS", []],
    ["node_modules/**", ["node_modules/p/a.ts"]],
  ])("%s finds files", async (pattern, expected) => {
    const { matches, truncated } = await it().glob(pattern, "tree", signal);
    expect(matches).toEqual(expected.map((path) => `${it().workdir}/tree/${path}`));
    expect(truncated).toBe(false);
  });

  test("accepts an absolute pattern inside the workspace, but not outside", async () => {
    const absolute = await it().glob(`${it().workdir}/tree/*.ts`, ".", signal);
    expect(absolute.matches).toEqual([`${it().workdir}/tree/a.ts`]);
    await refuses(() => it().glob("/etc/*", ".", signal), "backend_refused", "/etc/*");
  });

  test("return the first hundred files by name, and report that there are more", async () => {
    await execute(it(), "mkdir many && cd many && for i in $(seq 1000 1150); do : > f$i; done");
    const { matches, truncated } = await it().glob("f*", "many", signal);
    expect(truncated).toBe(true);
    expect(matches).toEqual(
      Array.from({ length: 100 }, (_, index) => `${it().workdir}/many/f${1000 + index}`),
    );
  });

  test("explain the error in a pattern or a folder", async () => {
    await refuses(() => it().glob("[a", ".", signal), "invalid_request", "`[` without `]`");
    await refuses(() => it().glob("{a", ".", signal), "invalid_request", "`{` without `}`");
    await refuses(() => it().glob("*", "nowhere", signal), "not_found", "`nowhere`");
    await refuses(() => it().glob("x".repeat(2000), ".", signal), "invalid_request", "at most");
  });
}

function grepping(it: It): void {
  beforeAll(async () => {
    const files = {
      "a.txt": "first\nsecond Line\r\nthird line",
      "sub/b.md": "a line in b\n",
      "sub/b.bin": "a line\0in b\n",
      "node_modules/c.txt": "a line in c\n",
      "wide.txt": toUtf16("\ufefffirst\r\na wide word\r\n", "utf-16le"),
      "long.txt": `${"x".repeat(3000)}NEEDLE${"y".repeat(3000)}\n`,
    };
    for (const [path, text] of Object.entries(files))
      await it().write(`searched/${path}`, Buffer.from(text), signal);
  });
  const grep = (pattern: string, path = "searched", include?: string) =>
    it().grep(pattern, path, include, signal);

  test("return lines with file and number", async () => {
    expect(await grep("[Ll]ine$")).toEqual({
      matches: [
        { file: `${it().workdir}/searched/a.txt`, line: 2, text: "second Line" },
        { file: `${it().workdir}/searched/a.txt`, line: 3, text: "third line" },
      ],
      truncated: false,
      skipped: 1,
    });
  });

  test("search UTF-16 files with a byte order mark, and count files that are not text", async () => {
    expect(await grep("wide")).toEqual({
      matches: [{ file: `${it().workdir}/searched/wide.txt`, line: 2, text: "a wide word" }],
      truncated: false,
      skipped: 1,
    });
    expect(await grep("a", "searched", "*.txt")).not.toHaveProperty("skipped");
  });

  test("cover only the given path, and only text files", async () => {
    const files = async (path?: string, include?: string) =>
      (await grep("line", path, include)).matches.map(({ file }) => relative(it().workdir, file));
    expect(await files()).toEqual(["searched/a.txt", "searched/sub/b.md"]);
    expect(await files("searched", "*.md")).toEqual(["searched/sub/b.md"]);
    expect(await files("searched", "sub/*")).toEqual(["searched/sub/b.md"]);
    expect(await files("searched/a.txt")).toEqual(["searched/a.txt"]);
    expect(await files("searched/node_modules")).toEqual(["searched/node_modules/c.txt"]);
  });

  test("return the part of a long line around the match", async () => {
    const [match] = (await grep("NEEDLE")).matches;
    expect(match?.text.length).toBeLessThanOrEqual(502);
    expect(match?.text).toMatch(/^…x+NEEDLEy+…$/);
  });

  test("return the first two hundred lines, and report that there are more", async () => {
    await it().write("counted/f", Buffer.from("hit\n".repeat(201)), signal);
    const found = await grep("hit", "counted");
    expect(found.matches.length).toBe(200);
    expect(found.truncated).toBe(true);
    await it().write("counted/f", Buffer.from("hit\n".repeat(200)), signal);
    expect((await grep("hit", "counted")).truncated).toBe(false);
  });

  test("explain the error in an expression", async () => {
    await refuses(() => grep("("), "invalid_request", "not valid RE2");
    await refuses(() => grep("(?=a)b"), "invalid_request", "no look-around");
    await refuses(() => grep("(a{1,500}){1,500}"), "invalid_request", "expression");
    await refuses(() => grep("x".repeat(2000)), "invalid_request", "at most");
    await refuses(() => grep("a", "nowhere"), "not_found", "`nowhere`");
  });

  test("cannot block the server with an expression", async () => {
    const line = `${"ab ".repeat(100_000)}\n`;
    await it().write("hostile/f", Buffer.from(line.repeat(2)), signal);
    for (const pattern of [
      "(a|b| ){800}[^ab ]",
      "(?:a.{400}[x-z])|(?:b.{400}[x-z])",
      "(([ab ]{0,30}a){0,30}b){0,1}[xyz]",
    ]) {
      let beats = 0;
      const beat = setInterval(() => beats++, 1);
      const found = await grep(pattern, "hostile").finally(() => clearInterval(beat));
      expect(found).toEqual({ matches: [], truncated: true });
      expect(beats).toBeGreaterThan(0);
    }
  });

  test("end when they are cancelled", async () => {
    const abort = new AbortController();
    abort.abort(new Error("enough"));
    await expect(it().grep("line", ".", undefined, abort.signal)).rejects.toThrow("enough");
    await expect(it().glob("*", ".", abort.signal)).rejects.toThrow("enough");
  });
}
