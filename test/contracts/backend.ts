// What every backend promises: its files first, then its searches, then its commands. An implementation's own
// test calls this. Everything goes through the port; the workspace is a POSIX one with `sh`.

import { createHash, randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Backend, ExecOptions, ExecResult } from "../../src/core/backend.ts";
import type { ErrorCode } from "../../src/core/errors.ts";

export interface OpenedBackend {
  readonly backend: Backend;
  close(): Promise<void>;
}

const { signal } = new AbortController();

export function backendContract(open: () => Promise<OpenedBackend>): void {
  const it = opening(open);
  files(it);
  searches(it);
  commands(it);
}

/** The part of it that is about files; commands only serve the tests. */
export function filesContract(open: () => Promise<OpenedBackend>): void {
  const it = opening(open);
  files(it);
  searches(it);
}

/** The part of it that is about commands; of the files it uses `read`, `write`, `stat` and `remove`. */
export function commandsContract(open: () => Promise<OpenedBackend>): void {
  commands(opening(open));
}

function opening(open: () => Promise<OpenedBackend>): It {
  let opened: OpenedBackend;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened.close());
  return () => opened.backend;
}

function files(it: It): void {
  describe("files", () => {
    reading(it);
    writing(it);
    paths(it);
    folders(it);
    editing(it);
  });
}

function searches(it: It): void {
  describe("searches", () => {
    globbing(it);
    grepping(it);
  });
}

function commands(it: It): void {
  describe("commands", () => {
    running(it);
    output(it);
    ending(it);
  });
}

type It = () => Backend;

function reading(it: It): void {
  test.each([0, 1, 4095, 65_536, 98_305, 1_048_577])(
    "gives back %i bytes as they were written",
    async (size) => {
      const bytes = randomBytes(size);
      expect(await it().write("sizes/file", bytes, signal)).toBe(size);
      expect(await sha(readAll(it(), "sizes/file"))).toBe(await sha(bytes));
      expect((await it().stat("sizes/file", signal)).size).toBe(size);
    },
  );

  test("keeps every byte there is", async () => {
    const bytes = Uint8Array.from({ length: 512 }, (_, index) => index % 256);
    await it().write("bytes", bytes, signal);
    expect([...(await readAll(it(), "bytes"))]).toEqual([...bytes]);
  });

  test("reads the range that is asked for, and no more than there is", async () => {
    await it().write("range", Buffer.from("0123456789"), signal);
    const part = async (offset?: number, length?: number) =>
      String(
        await readAll(it(), "range", {
          ...(offset === undefined ? {} : { offset }),
          ...(length === undefined ? {} : { length }),
        }),
      );
    expect(await part(3, 4)).toBe("3456");
    expect(await part(7)).toBe("789");
    expect(await part(8, 100)).toBe("89");
    expect(await part(10, 5)).toBe("");
    expect(await part(99)).toBe("");
    expect(await part(0, 0)).toBe("");
  });

  test("reads a large file piece by piece, and stops when the reader does", async () => {
    await it().write("large", Buffer.alloc(3_000_000, 97), signal);
    for await (const chunk of it().read("large", {}, signal)) {
      expect(chunk.length).toBeLessThan(1_000_000);
      break;
    }
    await it().remove("large", signal);
  });

  test("ends a read when it is cancelled", async () => {
    await it().write("large", Buffer.alloc(3_000_000, 97), signal);
    const abort = new AbortController();
    const read = async () => {
      for await (const _ of it().read("large", {}, abort.signal)) abort.abort(new Error("enough"));
    };
    await expect(read()).rejects.toThrow("enough");
  });

  test("tells what is missing, and what is no file", async () => {
    await it().write("kinds/file", Buffer.from("x"), signal);
    await execute(it(), "mkfifo kinds/pipe");
    await refuses(() => readAll(it(), "nowhere"), "not_found", "`nowhere`");
    await refuses(() => it().stat("nowhere/at/all", signal), "not_found", "`nowhere/at/all`");
    await refuses(() => readAll(it(), "kinds"), "invalid_request", "folder");
    await refuses(() => readAll(it(), "kinds/pipe"), "invalid_request", "pipe");
    await refuses(() => readAll(it(), "kinds/file/below"), "invalid_request", "`kinds/file/below`");
    await refuses(() => it().list("kinds/file", signal), "invalid_request", "not a folder");
    await refuses(() => it().list("nowhere", signal), "not_found", "`nowhere`");
  });
}

function writing(it: It): void {
  test("replaces a file whole, and keeps it executable", async () => {
    await it().write("tool", Buffer.from("#!/bin/sh\necho first\n"), signal);
    await execute(it(), "chmod 755 tool");
    await it().write("tool", Buffer.from("#!/bin/sh\necho second\n"), signal);
    expect(await execute(it(), "./tool")).toMatchObject({ output: "second\n", exitCode: 0 });
  });

  test("takes a file as it comes", async () => {
    const chunks = Array.from({ length: 50 }, () => randomBytes(7001));
    const bytes = await it().write("streamed", from(chunks), signal);
    expect(bytes).toBe(50 * 7001);
    expect(await sha(readAll(it(), "streamed"))).toBe(await sha(Buffer.concat(chunks)));
  });

  test("a write that fails half way changes nothing", async () => {
    await it().write("half/file", Buffer.from("before"), signal);
    async function* broken() {
      yield Buffer.from("after");
      throw new Error("the line went dead");
    }
    await expect(it().write("half/file", broken(), signal)).rejects.toThrow();
    await expect(it().write("half/new", broken(), signal)).rejects.toThrow();
    expect(String(await readAll(it(), "half/file"))).toBe("before");
    expect(await names(it(), "half")).toEqual(["file"]);
  });

  test("a write is cancelled while its source keeps silent", async () => {
    const abort = new AbortController();
    async function* silent() {
      yield Buffer.from("some");
      abort.abort(new Error("cancelled by the test"));
      await new Promise(() => {});
    }
    await expect(it().write("silent/file", silent(), abort.signal)).rejects.toThrow("cancelled by the test");
    expect(await names(it(), "silent")).toEqual([]);
  });

  test("of many writers at once one wins, and no reader sees a mixture", async () => {
    const bodies = Array.from({ length: 20 }, (_, index) => Buffer.alloc(200_000 + index, 65 + index));
    await it().write("race", Buffer.alloc(200_000, 64), signal);
    let writing = true;
    const writes = Promise.all(bodies.map((body) => it().write("race", body, signal))).finally(() => {
      writing = false;
    });
    do {
      const seen = await readAll(it(), "race");
      expect(seen.length).toBeGreaterThanOrEqual(200_000);
      expect(seen.every((byte) => byte === seen[0])).toBe(true);
      expect((await it().stat("race", signal)).path).toBe(`${it().workdir}/race`);
    } while (writing);
    await writes;
    const last = await readAll(it(), "race");
    expect(bodies.some((body) => body.equals(last))).toBe(true);
  });

  test("writes no folder, no pipe, and nothing below a file", async () => {
    await it().write("targets/folder/file", Buffer.from("x"), signal);
    await execute(it(), "mkfifo targets/pipe");
    const write = (path: string) => it().write(path, Buffer.from("y"), signal);
    await refuses(() => write("targets/folder"), "invalid_request", "folder");
    await refuses(() => write("."), "invalid_request", "folder");
    await refuses(() => write("targets/pipe"), "invalid_request", "pipe");
    await refuses(() => write("targets/folder/file/below"), "invalid_request", "`targets/folder/file/below`");
  });
}

function paths(it: It): void {
  test.each([
    "with space",
    "new\nline",
    "quote'\"`quote",
    "$(touch gone) ; rm -rf * & |",
    "-rf",
    "back\\slash",
    "ünïcödé 漢字 🧵",
    "…",
    ".hidden",
    "*?[a]{b,c}",
  ])("takes %j for a name like any other", async (name) => {
    const path = `names/${name}/${name}`;
    await it().write(path, Buffer.from(name), signal);
    expect(String(await readAll(it(), path))).toBe(name);
    expect(await names(it(), "names")).toContain(name);
    expect(await it().stat(path, signal)).toMatchObject({ path: `${it().workdir}/${path}`, type: "file" });
    await it().remove(`names/${name}`, signal);
    expect(await names(it(), "names")).not.toContain(name);
  });

  test("a file is the same by its relative and its absolute path", async () => {
    await it().write(`${it().workdir}/./same/../same/file`, Buffer.from("one"), signal);
    expect(String(await readAll(it(), "same/file"))).toBe("one");
    expect((await it().stat("./same//file", signal)).path).toBe(`${it().workdir}/same/file`);
  });

  test.each(["..", "../outside", "a/../../outside", "/etc/passwd", "/", "/workspaces"])(
    "refuses %j, which is outside",
    async (path) => {
      for (const attempt of everything(it(), path)) await refuses(attempt, "backend_refused", "workspace");
    },
  );

  test.each([
    ["", "empty"],
    ["a\0b", "NUL"],
    ["n".repeat(256), "too long"],
    ["d/".repeat(2500), "too long"],
  ])("says what is wrong with a path that is none (%#)", async (path, fault) => {
    for (const attempt of everything(it(), path)) await refuses(attempt, "invalid_request", fault);
  });

  test("no link leads out, whatever is done through it", async () => {
    await execute(
      it(),
      `mkdir -p links && cd links && ln -s /etc/passwd file && ln -s /etc folder && ln -s / root &&
       ln -s ../../../../../../../../etc/passwd climbing && ln -s /nowhere/at/all dangling && ln -s file chained`,
    );
    for (const path of [
      "links/file",
      "links/climbing",
      "links/chained",
      "links/folder/passwd",
      "links/root/etc/passwd",
    ])
      for (const attempt of [...everything(it(), path)].slice(0, -1))
        await refuses(attempt, "backend_refused", "link");
    await refuses(() => it().write("links/folder/new", Buffer.from("x"), signal), "backend_refused", "link");
    await refuses(
      () => it().write("links/root/tmp/a/b", Buffer.from("x"), signal),
      "backend_refused",
      "link",
    );
    await refuses(() => it().write("links/dangling", Buffer.from("x"), signal), "backend_refused", "link");
    await refuses(() => it().remove("links/folder/passwd", signal), "backend_refused", "link");
    expect(await it().grep("root", "links", undefined, signal)).toEqual({ matches: [], truncated: false });
    expect((await it().glob("**/passwd", "links", signal)).matches).toEqual([]);
  });

  test("a link that stays inside is followed", async () => {
    await it().write("inside/real/file", Buffer.from("one"), signal);
    await execute(
      it(),
      `cd inside && ln -s real folder && ln -s real/file relative && ln -s "$PWD/real/file" absolute`,
    );
    for (const path of ["inside/folder/file", "inside/relative", "inside/absolute"])
      expect(String(await readAll(it(), path))).toBe("one");
    await it().write("inside/relative", Buffer.from("two"), signal);
    await it().edit("inside/absolute", "two", "three", signal);
    await it().write("inside/folder/other", Buffer.from("new"), signal);
    expect(String(await readAll(it(), "inside/real/file"))).toBe("three");
    expect(await names(it(), "inside/real")).toEqual(["file", "other"]);
    const links = (await it().list("inside", signal)).filter(({ type }) => type === "symlink");
    expect(links.map(({ path }) => path.split("/").at(-1))).toEqual(["absolute", "folder", "relative"]);
  });

  test("gives up on links that go in a circle", async () => {
    await execute(it(), "mkdir -p circle && ln -s b circle/a && ln -s a circle/b && ln -s . circle/self");
    await refuses(() => readAll(it(), "circle/a"), "backend_refused", "links");
    expect((await it().glob("**/x", "circle", signal)).matches).toEqual([]);
  });
}

function folders(it: It): void {
  test("lists a folder's own entries by name, with their kind", async () => {
    await it().write("listed/b", Buffer.from("four"), signal);
    await it().write("listed/c/deep", Buffer.from("x"), signal);
    await execute(
      it(),
      "ln -s /nowhere listed/a; mkfifo listed/d; TZ=UTC0 touch -t 200102030405.06 listed/b",
    );
    const listed = await it().list("listed", signal);
    expect(listed.map(({ path, type }) => [path, type])).toEqual([
      [`${it().workdir}/listed/a`, "symlink"],
      [`${it().workdir}/listed/b`, "file"],
      [`${it().workdir}/listed/c`, "directory"],
      [`${it().workdir}/listed/d`, "other"],
    ]);
    expect(listed[1]).toMatchObject({ size: 4, modified_at: "2001-02-03T04:05:06.000Z" });
    expect((await it().stat(".", signal)).type).toBe("directory");
  });

  test("removes a file, a link, and a folder with all that is in it", async () => {
    await it().write("removed/keep", Buffer.from("kept"), signal);
    await it().write("removed/file", Buffer.from("x"), signal);
    await execute(
      it(),
      "cd removed && ln -s keep link && ln -s / way-out && mkdir -p folder/a/b && ln -s ../../keep folder/a/l && mkfifo folder/p && chmod 500 folder/a folder",
    );
    for (const name of ["file", "link", "way-out", "folder"]) await it().remove(`removed/${name}`, signal);
    expect(await names(it(), "removed")).toEqual(["keep"]);
    expect(String(await readAll(it(), "removed/keep"))).toBe("kept");
    await refuses(() => it().remove("removed/file", signal), "not_found", "`removed/file`");
    await refuses(() => it().remove(".", signal), "backend_refused", "workspace itself");
  });
}

function editing(it: It): void {
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

  test("leaves every other byte as it is, whatever the encoding", async () => {
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
  ];
  const skipped = ["node_modules/p/a.ts", ".git/a.ts", "src/__pycache__/a.ts", ".venv/a.ts"];
  beforeAll(async () => {
    for (const path of [...paths, ...skipped]) await it().write(`tree/${path}`, Buffer.from("x"), signal);
    await execute(it(), "cd tree && ln -s src linked && ln -s a.ts link.ts");
  });

  test.each([
    ["*.ts", ["a.ts", "src/[x].ts", "src/a.ts", "src/deep/er/a.ts", "test/a.ts"]],
    ["./*.ts", ["a.ts"]],
    ["**/*.ts", ["a.ts", "src/[x].ts", "src/a.ts", "src/deep/er/a.ts", "test/a.ts"]],
    ["src/*.ts", ["src/[x].ts", "src/a.ts"]],
    ["src/**", ["src/[x].ts", "src/a.ts", "src/b.tsx", "src/deep/er/a.ts"]],
    ["**/deep/**/a.ts", ["src/deep/er/a.ts"]],
    ["*.{js,tsx}", ["b.js", "src/b.tsx"]],
    ["{src,test}/a.ts", ["src/a.ts", "test/a.ts"]],
    ["?.js", ["b.js"]],
    ["[!a].js", ["b.js"]],
    ["[a-c].ts*", ["a.ts", "src/a.ts", "src/b.tsx", "src/deep/er/a.ts", "test/a.ts"]],
    ["\\[x\\].ts", ["src/[x].ts"]],
    [".env", [".env"]],
    ["A.TS", []],
    ["node_modules/**", ["node_modules/p/a.ts"]],
  ])("%s finds files", async (pattern, expected) => {
    const { matches, truncated } = await it().glob(pattern, "tree", signal);
    expect(matches).toEqual(expected.map((path) => `tree/${path}`));
    expect(truncated).toBe(false);
  });

  test("takes an absolute pattern inside the workspace, and none outside", async () => {
    const absolute = await it().glob(`${it().workdir}/tree/*.ts`, ".", signal);
    expect(absolute.matches).toEqual(["tree/a.ts"]);
    await refuses(() => it().glob("/etc/*", ".", signal), "backend_refused", "/etc/*");
  });

  test("finds the first hundred by name, and says that there are more", async () => {
    await execute(it(), "mkdir many && cd many && for i in $(seq 1000 1150); do : > f$i; done");
    const { matches, truncated } = await it().glob("f*", "many", signal);
    expect(truncated).toBe(true);
    expect(matches).toEqual(Array.from({ length: 100 }, (_, index) => `many/f${1000 + index}`));
  });

  test("says what is wrong with a pattern or a folder", async () => {
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
      "long.txt": `${"x".repeat(3000)}NEEDLE${"y".repeat(3000)}\n`,
    };
    for (const [path, text] of Object.entries(files))
      await it().write(`searched/${path}`, Buffer.from(text), signal);
  });
  const grep = (pattern: string, path = "searched", include?: string) =>
    it().grep(pattern, path, include, signal);

  test("finds lines, with file and number", async () => {
    expect(await grep("[Ll]ine$")).toEqual({
      matches: [
        { file: "searched/a.txt", line: 2, text: "second Line" },
        { file: "searched/a.txt", line: 3, text: "third line" },
      ],
      truncated: false,
    });
  });

  test("looks only where it is told, and never into what is no text", async () => {
    const files = async (path?: string, include?: string) =>
      (await grep("line", path, include)).matches.map(({ file }) => file);
    expect(await files()).toEqual(["searched/a.txt", "searched/sub/b.md"]);
    expect(await files("searched", "*.md")).toEqual(["searched/sub/b.md"]);
    expect(await files("searched", "sub/*")).toEqual(["searched/sub/b.md"]);
    expect(await files("searched/a.txt")).toEqual(["searched/a.txt"]);
    expect(await files("searched/node_modules")).toEqual(["searched/node_modules/c.txt"]);
  });

  test("shows of a long line what is around the match", async () => {
    const [match] = (await grep("NEEDLE")).matches;
    expect(match?.text.length).toBeLessThanOrEqual(502);
    expect(match?.text).toMatch(/^…x+NEEDLEy+…$/);
  });

  test("finds the first two hundred, and says that there are more", async () => {
    await it().write("counted/f", Buffer.from("hit\n".repeat(201)), signal);
    const found = await grep("hit", "counted");
    expect(found.matches.length).toBe(200);
    expect(found.truncated).toBe(true);
    await it().write("counted/f", Buffer.from("hit\n".repeat(200)), signal);
    expect((await grep("hit", "counted")).truncated).toBe(false);
  });

  test("says what is wrong with an expression", async () => {
    await refuses(() => grep("("), "invalid_request", "not valid RE2");
    await refuses(() => grep("(?=a)b"), "invalid_request", "no look-around");
    await refuses(() => grep("(a{1,500}){1,500}"), "invalid_request", "expression");
    await refuses(() => grep("x".repeat(2000)), "invalid_request", "at most");
    await refuses(() => grep("a", "nowhere"), "not_found", "`nowhere`");
  });

  test("no expression holds up the server", async () => {
    const line = `${"ab ".repeat(100_000)}\n`;
    await it().write("hostile/f", Buffer.from(line.repeat(2)), signal);
    for (const pattern of [
      "(a|b| ){800}[^ab ]",
      "(?:a.{400}[x-z])|(?:b.{400}[x-z])",
      "(([ab ]{0,30}a){0,30}b){0,1}[xyz]",
    ]) {
      let longest = 0;
      let last = performance.now();
      const beat = setInterval(() => {
        longest = Math.max(longest, performance.now() - last);
        last = performance.now();
      }, 5);
      const found = await grep(pattern, "hostile").finally(() => clearInterval(beat));
      expect(found).toEqual({ matches: [], truncated: true });
      expect(longest).toBeLessThan(2000);
    }
  });

  test("a search ends when it is cancelled", async () => {
    const abort = new AbortController();
    abort.abort(new Error("enough"));
    await expect(it().grep("line", ".", undefined, abort.signal)).rejects.toThrow("enough");
    await expect(it().glob("*", ".", abort.signal)).rejects.toThrow("enough");
  });
}

function running(it: It): void {
  test("runs a command line in the workspace, and tells its exit code", async () => {
    await it().write("from-port", Buffer.from("hello "), signal);
    const result = await execute(it(), "cat from-port; echo world > from-command; exit 7");
    expect(result).toEqual({ output: "hello ", omitted: 0, exitCode: 7 });
    expect(String(await readAll(it(), "from-command"))).toBe("world\n");
  });

  test("tells the signal that killed a command", async () => {
    expect(await execute(it(), "kill -s KILL $$")).toMatchObject({ exitCode: null, signal: "SIGKILL" });
    expect(await execute(it(), "exit 137")).toEqual({ output: "", omitted: 0, exitCode: 137 });
  });

  test("gives a command nothing to read", async () => {
    expect(await execute(it(), "cat; read line || echo end")).toMatchObject({ output: "end\n", exitCode: 0 });
  });

  test("takes the command as it is", async () => {
    const result = await execute(
      it(),
      `printf '%s\\n' "it's" '"quoted"' '$HOME' \\\\\ncat <<'EOF'\n); touch x; (\nEOF`,
    );
    expect(result.output).toBe(`it's\n"quoted"\n$HOME\n\\\n); touch x; (\n`);
    expect((await execute(it(), "if then")).exitCode).not.toBe(0);
    await refuses(() => execute(it(), "echo a\0b"), "invalid_request", "NUL");
    await refuses(() => execute(it(), `: ${"x".repeat(200_000)}`), "invalid_request", "200002 bytes");
  });

  test("gives each of many commands at once its own output", async () => {
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        execute(it(), `echo out-${index}; echo err-${index} >&2; exit ${index}`),
      ),
    );
    results.forEach((result, index) => {
      expect(result).toEqual({ output: `out-${index}\nerr-${index}\n`, omitted: 0, exitCode: index });
    });
  });
}

function output(it: It): void {
  test("joins output and errors in the order they came", async () => {
    const { output } = await execute(
      it(),
      "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done; echo d > /dev/stderr",
    );
    expect(output).toBe("o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\nd\n");
  });

  test("shows output while the command runs", async () => {
    const stream = it().exec("echo one; while [ ! -e go ]; do sleep 0.01; done; echo two", options());
    expect(await stream.next()).toEqual({ done: false, value: { text: "one\n" } });
    await it().write("go", Buffer.from(""), signal);
    const pieces: string[] = [];
    const result = await drained(stream, pieces);
    expect(pieces.join("")).toBe("two\n");
    expect(result.output).toBe("one\ntwo\n");
    await it().remove("go", signal);
  });

  test("shows in pieces exactly what it returns, characters whole", async () => {
    const pieces: string[] = [];
    const result = await drained(
      it().exec(
        "printf 'a\\303'; sleep 0.15; printf '\\251b\\360\\237'; sleep 0.15; printf '\\247\\265\\377'",
        options(),
      ),
      pieces,
    );
    expect(result.output).toBe("aéb🧵\ufffd");
    expect(pieces.join("")).toBe(result.output);
  });

  test("keeps the beginning and the end of a long output, and counts the rest", async () => {
    const pieces: string[] = [];
    const command =
      "echo FIRST; i=0; while [ $i -lt 3000 ]; do echo $i-0123456789012345678901234567890123456789012345678901234567890123456789; i=$((i+1)); done; echo LAST";
    const result = await drained(it().exec(command, options()), pieces);
    const total = Number((await execute(it(), `(${command}) | wc -c`)).output);
    const [head = "", tail = ""] = result.output.split(/\n\n\.\.\. \(\d+ characters left out\) \.\.\.\n\n/);
    expect(head.startsWith("FIRST\n0-0")).toBe(true);
    expect(tail.endsWith("\nLAST\n")).toBe(true);
    expect(head.length + result.omitted + tail.length).toBe(total);
    expect(result.output.length).toBeLessThan(101_000);
    expect(pieces.join("")).toBe(head);
  });

  test("ends a command that never stops printing", async () => {
    const result = await execute(it(), "yes");
    expect(result).toMatchObject({ ended: "output-limit", exitCode: null });
    expect(result.omitted).toBeGreaterThan(60_000_000);
    expect(result.output.startsWith("y\ny\n")).toBe(true);
  });

  test("does not wait for what is left in the background", async () => {
    const started = performance.now();
    expect(await execute(it(), "(sleep 300; echo late) & echo x")).toMatchObject({
      output: "x\n",
      exitCode: 0,
    });
    expect(await execute(it(), "yes > /dev/null & echo y")).toMatchObject({ output: "y\n", exitCode: 0 });
    expect(performance.now() - started).toBeLessThan(10_000);
    expect((await execute(it(), "echo next")).output).toBe("next\n");
  });

  test("what is left in the background may go on printing", async () => {
    await execute(
      it(),
      "(while [ ! -e go ]; do sleep 0.01; done; head -c 1000000 /dev/zero; echo done > printed) &",
    );
    await it().write("go", Buffer.from(""), signal);
    const { output } = await execute(
      it(),
      "while [ ! -s printed ]; do sleep 0.01; done; cat printed; rm go printed",
    );
    expect(output).toBe("done\n");
  });
}

function ending(it: It): void {
  /** Each leaves the ids of its processes in `pids`, so many of them. */
  const stubborn: readonly [string, number, string][] = [
    ["waits", 1, "echo $$ >> pids; sleep 300"],
    ["spins", 1, "echo $$ >> pids; while :; do :; done"],
    ["prints", 1, "echo $$ >> pids; while :; do echo x; done"],
    ["has children", 2, "sleep 300 & echo $! >> pids; sleep 300 & echo $! >> pids; wait"],
    ["is a pipeline", 1, "sleep 300 | (echo $$ >> pids; cat) | cat"],
    [
      "will not end",
      2,
      "trap '' TERM INT HUP; echo $$ >> pids; sleep 300 & echo $! >> pids; wait; sleep 300",
    ],
    ["has stopped itself", 1, "echo $$ >> pids; kill -s STOP $$; sleep 300"],
    ["has children in another session", 1, "setsid sh -c 'echo $$ >> pids; sleep 300; :' & sleep 300"],
    ["has a daemon", 1, "(setsid sh -c 'trap \"\" TERM; echo $$ >> pids; sleep 300; :' &) ; sleep 300"],
    ["has closed its output", 1, "echo $$ >> pids; exec >&- 2>&-; sleep 300"],
  ];

  test.each(stubborn)(
    "a command that %s is cancelled with everything it started",
    async (_, count, command) => {
      await it().write("pids", Buffer.from(""), signal);
      const abort = new AbortController();
      const running = execute(it(), command, { signal: abort.signal });
      await expect.poll(async () => (await processes(it())).length, { timeout: 10_000 }).toBe(count);
      abort.abort();
      expect(await running).toMatchObject({ ended: "cancelled" });
      expect(await survivors(it())).toBe("");
    },
  );

  test("keeps what a command printed before its timeout, and its last words", async () => {
    const result = await execute(it(), "trap 'echo bye; exit 3' TERM; echo hello; while :; do :; done", {
      timeoutMs: 500,
    });
    expect(result).toEqual({ output: "hello\nbye\n", omitted: 0, exitCode: 3, ended: "timeout" });
  });

  test("ends a command whose reader has left", async () => {
    await it().write("pids", Buffer.from(""), signal);
    for await (const _ of it().exec("echo $$ >> pids; echo running; sleep 300", options())) break;
    expect(await survivors(it())).toBe("");
  });

  test("starts nothing when it is cancelled already", async () => {
    const result = await execute(it(), "echo x > started", { signal: AbortSignal.abort() });
    expect(result).toMatchObject({ ended: "cancelled", output: "" });
    await refuses(() => it().stat("started", signal), "not_found", "started");
  });
}

// --- what the tests are written with

function options(): ExecOptions {
  return { signal, timeoutMs: 15_000 };
}

export async function drained(
  stream: ReturnType<Backend["exec"]>,
  pieces: string[] = [],
): Promise<ExecResult> {
  for (;;) {
    const item = await stream.next();
    if (item.done) return item.value;
    pieces.push(item.value.text);
  }
}

export const execute = (backend: Backend, command: string, changed: Partial<ExecOptions> = {}) =>
  drained(backend.exec(command, { ...options(), ...changed }));

export async function readAll(
  backend: Backend,
  path: string,
  range: { offset?: number; length?: number } = {},
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of backend.read(path, range, signal)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function names(backend: Backend, folder: string): Promise<string[]> {
  const entries = await backend.list(folder, signal);
  return entries.map(({ path }) => path.slice(path.lastIndexOf("/") + 1));
}

/** Every way to touch a path; the last one removes it. */
function everything(backend: Backend, path: string): (() => Promise<unknown>)[] {
  return [
    () => backend.stat(path, signal),
    () => readAll(backend, path),
    () => backend.write(path, Buffer.from("x"), signal),
    () => backend.edit(path, "root", "x", signal),
    () => backend.list(path, signal),
    () => backend.glob("*", path, signal),
    () => backend.grep("root", path, undefined, signal),
    () => backend.remove(path, signal),
  ];
}

export async function refuses(
  attempt: () => Promise<unknown>,
  code: ErrorCode,
  words: string,
): Promise<void> {
  const error = await attempt().then(
    () => "nothing was thrown",
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({ code, message: expect.stringContaining(words) });
}

async function* from(chunks: readonly Uint8Array[]) {
  yield* chunks;
}

const sha = async (bytes: Uint8Array | Promise<Uint8Array>) =>
  createHash("sha256")
    .update(await bytes)
    .digest("hex");

/** The ids in `pids`. */
async function processes(backend: Backend): Promise<string[]> {
  return String(await readAll(backend, "pids")).match(/\d+(?=\n)/g) ?? [];
}

/** Of the processes named in `pids`, the state of those that live. */
async function survivors(backend: Backend): Promise<string> {
  expect(await processes(backend)).not.toEqual([]);
  const check = 'for p in $(cat pids); do grep -s "^State:" "/proc/$p/status" | grep -v Z; done';
  return (await execute(backend, check)).output;
}
